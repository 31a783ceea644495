/**
 * The inbox's search, filters and sort order. They are part of the address, so that a view can be bookmarked and
 * shared.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Ref } from "preact";
import { encodeSegment } from "../core/api.ts";
import { Icon } from "../ui/icons.tsx";
import { hasScope } from "../core/me.ts";
import { isNarrowed, type ListQuery } from "./queue-state.ts";
import { SORTS, TABS, TEXTS } from "./strings.ts";

const NAMES = ["view", "agent_id", "tool", "operation", "risk_level", "q", "sort", "group"] as const;
const RISKS = ["low", "medium", "high", "critical"] as const;
/** Delay from the last keystroke to the search. Milliseconds. */
const TYPING_MS = 250;

/** Reads the query from the address. Omits values that the service does not know. */
export function readQueueQuery(search: URLSearchParams): ListQuery {
  const given = (name: string): string | undefined => search.get(name) ?? undefined;
  const among = <T extends string>(name: string, values: readonly T[]): T | undefined =>
    values.find((value) => value === search.get(name));
  const query = {
    view: search.has("view") ? among("view", ["mine", "second_vote"]) : defaultView(),
    agent_id: given("agent_id"),
    tool: given("tool"),
    operation: given("operation"),
    risk_level: among("risk_level", RISKS),
    q: given("q"),
    sort: among("sort", ["newest", "oldest", "risk"]),
    group: given("group"),
  };
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as ListQuery;
}

/** What a person can approve comes first. A credential that cannot vote sees all requests. */
const defaultView = (): ListQuery["view"] => (hasScope("approvals:decide") ? "mine" : undefined);

/** Returns the address of a request, or of the list if `id` is null, including the filters of `query`. */
export function queueAddress(id: string | null, query: ListQuery): string {
  const search = new URLSearchParams();
  if (query.view === undefined && defaultView() !== undefined) search.set("view", "all");
  for (const name of NAMES) {
    const value = query[name];
    if (value !== undefined && value !== "" && !(name === "view" && value === defaultView())) search.set(name, value);
  }
  return `#/approvals${id === null ? "" : `/${encodeSegment(id)}`}${search.size === 0 ? "" : `?${search}`}`;
}

interface Props {
  query: ListQuery;
  onChange(query: ListQuery): void;
  /** Reference to the search field, so that the keyboard shortcut can focus it. */
  field: Ref<HTMLInputElement>;
}

export function Filters({ query, onChange, field }: Props) {
  const change = (name: (typeof NAMES)[number], value: string): void => {
    // Start from the address, because the page may not have rendered an earlier change yet.
    const {
      [name]: _,
      group: _group,
      ...rest
    } = readQueueQuery(new URLSearchParams(location.hash.split("?")[1] ?? ""));
    onChange(value === "" ? rest : ({ ...rest, [name]: value } as ListQuery));
  };
  const [isOpen, setOpen] = useState(() => isNarrowed({ ...query, q: undefined } as ListQuery));
  const narrowing = [query.agent_id, query.tool, query.operation, query.risk_level].filter((value) => value).length;
  return (
    <>
      <div class="tabs" role="group" aria-label={TEXTS.tabs}>
        {TABS.map(({ view, title }) => (
          <button
            key={view}
            type="button"
            aria-pressed={(query.view ?? "") === view}
            onClick={() => change("view", view)}
          >
            {title}
          </button>
        ))}
      </div>
      <div class="search-row">
        <Search value={query.q ?? ""} field={field} onChange={(value) => change("q", value)} />
        <button
          type="button"
          class="small"
          aria-expanded={isOpen}
          aria-controls="filters"
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name="filter" />
          {TEXTS.filter}
          {narrowing === 0 ? null : <span class="badge">{narrowing}</span>}
        </button>
      </div>
      {isOpen ? (
        <div class="inbox-filters" id="filters">
          <label>
            {TEXTS.sort}
            <select
              value={query.sort ?? "deadline"}
              onChange={(event) => change("sort", toSort(event.currentTarget.value))}
            >
              {SORTS.map(({ sort, title }) => (
                <option key={sort} value={sort}>
                  {title}
                </option>
              ))}
            </select>
          </label>
          <label>
            {TEXTS.risk}
            <select
              value={query.risk_level ?? ""}
              onChange={(event) => change("risk_level", event.currentTarget.value)}
            >
              <option value="">any</option>
              {RISKS.map((risk) => (
                <option key={risk}>{risk}</option>
              ))}
            </select>
          </label>
          {(["agent_id", "tool", "operation"] as const).map((name) => (
            <label key={name}>
              {TEXTS.fields[name]}
              <input value={query[name] ?? ""} onChange={(event) => change(name, event.currentTarget.value.trim())} />
            </label>
          ))}
          {isNarrowed(query) ? (
            <button
              type="button"
              class="small"
              onClick={() => onChange({ ...(query.view !== undefined && { view: query.view }) })}
            >
              {TEXTS.clearFilters}
            </button>
          ) : null}
        </div>
      ) : null}
    </>
  );
}

/** The service's default order does not need a parameter. */
const toSort = (sort: string): string => (sort === "deadline" ? "" : sort);

function Search({
  value,
  field,
  onChange,
}: {
  value: string;
  field: Ref<HTMLInputElement>;
  onChange(value: string): void;
}) {
  const [text, setText] = useState(value);
  const latest = useRef(onChange);
  latest.current = onChange;
  // A link can open another view, whose search text replaces the current text.
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text.trim() === value) return undefined;
    const timer = setTimeout(() => latest.current(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div class="search">
      <Icon name="search" />
      <input
        ref={field}
        type="search"
        aria-label={TEXTS.search}
        placeholder={TEXTS.search}
        maxLength={200}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
      />
    </div>
  );
}
