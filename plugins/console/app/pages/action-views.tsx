/** Views: named filters of the action list. Some are built in; users can save more in their browser. */
import { useState } from "preact/hooks";
import { buildUrl } from "../core/api.ts";
import { Icon } from "../ui/icons.tsx";
import { renderPlain } from "../ui/format.ts";
import { type ActionFilters, FILTERS } from "./action-list.ts";

const STORE = "assent.views";
const MAX_VIEWS = 20;

const TEXTS = {
  label: "Saved views",
  save: "Save this view",
  name: "Name of the view",
  remove: (name: string) => `Remove the view ${name}`,
  given: { pending: "Pending", denied: "Denied", failed: "Failed", unknown: "Outcome unknown" },
} as const;

interface View {
  name: string;
  address: string;
}

const GIVEN: readonly View[] = [
  { name: TEXTS.given.pending, address: "#/actions?status=pending_approval" },
  { name: TEXTS.given.denied, address: "#/actions?status=denied" },
  { name: TEXTS.given.failed, address: "#/actions?status=failed" },
  { name: TEXTS.given.unknown, address: "#/actions?status=unknown" },
];

export function ActionViews({ filters }: { filters: ActionFilters }) {
  const [saved, setSaved] = useState(readViews);
  const [name, setName] = useState("");
  const address = buildUrl("#/actions", filters);
  const isNew =
    FILTERS.some((filter) => filters[filter] !== "") && ![...GIVEN, ...saved].some((view) => view.address === address);
  const store = (views: readonly View[]): void => {
    if (views.length === 0) localStorage.removeItem(STORE);
    else localStorage.setItem(STORE, JSON.stringify(views));
    setSaved(views);
  };
  return (
    <div class="views row" role="group" aria-label={TEXTS.label}>
      {GIVEN.map((view) => (
        <ViewLink key={view.address} view={view} isCurrent={view.address === address} />
      ))}
      {saved.map((view) => (
        <span key={view.address} class="saved-view">
          <ViewLink view={view} isCurrent={view.address === address} />
          <button
            type="button"
            class="icon-button"
            aria-label={renderPlain(TEXTS.remove(view.name))}
            onClick={() => store(saved.filter((one) => one !== view))}
          >
            <Icon name="x" />
          </button>
        </span>
      ))}
      {isNew && saved.length < MAX_VIEWS ? (
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            if (name.trim() === "") return;
            store([...saved, { name: name.trim(), address }]);
            setName("");
          }}
        >
          <input
            aria-label={TEXTS.name}
            placeholder={TEXTS.name}
            maxLength={40}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <button type="submit" disabled={name.trim() === ""}>
            {TEXTS.save}
          </button>
        </form>
      ) : null}
    </div>
  );
}

function ViewLink({ view, isCurrent }: { view: View; isCurrent: boolean }) {
  return (
    <a class="button" href={view.address} {...(isCurrent ? { "aria-current": "true" as const } : {})}>
      {renderPlain(view.name)}
    </a>
  );
}

/** Returns the saved views. Ignores stored values that this page did not write. */
function readViews(): readonly View[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORE) ?? "[]");
    if (!Array.isArray(stored)) return [];
    return (stored as Partial<View>[]).filter(
      (view): view is View =>
        typeof view?.name === "string" && typeof view.address === "string" && view.address.startsWith("#/actions?"),
    );
  } catch {
    return [];
  }
}
