/** The command palette (Ctrl+K): opens pages, finds objects such as agents and actions, and runs commands. */
import { useEffect, useRef, useState } from "preact/hooks";
import { hasScope } from "../core/me.ts";
import { type Command, type FoundObject, listFinders, loadModule, type PageEntry } from "../core/parts.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNotice } from "../ui/elements.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";
import { PreviewText } from "../ui/preview-text.tsx";

/** Delay from the last keystroke to the search for objects. Milliseconds. */
const TYPING_MS = 150;
/** Maximum number of objects that are displayed of each feature. */
const MAX_FOUND = 5;

interface Props {
  pages: readonly PageEntry[];
  commands: readonly Command[];
  onCommand(command: Command): void;
  onSignOut(): void;
  onClose(): void;
}

interface Target {
  key: string;
  title: string;
  /** What kind of object it is; absent for pages and commands. */
  kind?: string;
  icon: IconName;
  open(): void;
}

export function PaletteDialog({ pages, commands, onCommand, onSignOut, onClose }: Props) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const typed = text.trim().toLowerCase();
  // "add user" finds "Add a user…".
  const words = typed.split(/\s+/);
  const isTyped = ({ title }: { title: string }): boolean => words.every((word) => title.toLowerCase().includes(word));
  const { found, isSearching, error } = useObjects(typed);
  const targets: Target[] = [
    ...pages.filter(isTyped).map(({ name, title, icon }) => ({
      key: name,
      title,
      icon,
      open: () => void (location.hash = `#/${name}`),
    })),
    ...pages.flatMap(({ name, icon, forms = [] }) =>
      forms
        .filter((form) => hasScope(form.scope) && isTyped(form))
        .map(({ title, path }) => ({ key: title, title, icon, open: () => void (location.hash = `#/${name}${path}`) })),
    ),
    ...commands.filter(isTyped).map((command) => ({
      key: command.title,
      title: command.title,
      icon: command.icon,
      open: () => onCommand(command),
    })),
    ...[{ key: "Sign out", title: "Sign out", icon: "log-out" as const, open: onSignOut }].filter(isTyped),
    ...found.map(({ address, title, kind, icon }) => ({
      key: address,
      title,
      kind,
      icon,
      open: () => void (location.hash = address),
    })),
  ];
  const open = (target: Target): void => {
    onClose();
    target.open();
  };
  // Enter can arrive before the search has found what it opens.
  const [isEntered, setEntered] = useState(false);
  const target = targets[chosen];
  useEffect(() => {
    if (!isEntered || (target === undefined && isSearching)) return;
    setEntered(false);
    if (target !== undefined) open(target);
  });
  return (
    <Dialog title="Go to" onClose={onClose} hotkey={false}>
      <input
        ref={field}
        class="wide"
        data-focus=""
        aria-label="Page, command or object"
        placeholder="Page, command, agent, person, action, policy or rule"
        autocomplete="off"
        maxLength={200}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
          setEntered(false);
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined) {
            event.preventDefault();
            setChosen(Math.min(Math.max(chosen + step, 0), Math.max(targets.length - 1, 0)));
          } else if (event.key === "Enter") {
            event.preventDefault();
            setEntered(true);
          }
        }}
      />
      <ul class="palette">
        {targets.map((target, i) => (
          <li key={target.key}>
            <button type="button" class={i === chosen ? "chosen" : ""} onClick={() => open(target)}>
              <Icon name={target.icon} />
              <span class="palette-title">
                <PreviewText text={target.title} />
              </span>
              {target.kind === undefined ? null : <span class="quiet">{target.kind}</span>}
            </button>
          </li>
        ))}
      </ul>
      <ErrorNotice error={error} />
      <p class="quiet" role="status">
        {isSearching ? "Searching…" : targets.length === 0 ? "Nothing matches." : ""}
      </p>
    </Dialog>
  );
}

/** Returns the objects that match the typed text, of all features that the credential can read. */
function useObjects(typed: string) {
  const [state, setState] = useState<{ typed: string; found: readonly Found[]; error: unknown }>(NOTHING);
  useEffect(() => {
    const over = new AbortController();
    const search = async (): Promise<void> => {
      const finders = listFinders().filter(({ scopes }) => scopes.some(hasScope));
      let error: unknown = null;
      const found = await Promise.all(
        finders.map(async ({ icon, load }) => {
          try {
            const objects = await (await loadModule(load))(typed, over.signal);
            return objects.slice(0, MAX_FOUND).map((object) => ({ ...object, icon }));
          } catch (fault) {
            error = fault;
            return [];
          }
        }),
      );
      if (!over.signal.aborted) setState({ typed, found: found.flat(), error });
    };
    if (typed === "") setState(NOTHING);
    const timer = typed === "" ? undefined : setTimeout(() => void search(), TYPING_MS);
    return () => {
      clearTimeout(timer);
      over.abort();
    };
  }, [typed]);
  const isCurrent = state.typed === typed;
  // Objects of an earlier text would open something else than what the person typed.
  return { found: isCurrent ? state.found : [], isSearching: !isCurrent, error: state.error };
}

type Found = FoundObject & { icon: IconName };
const NOTHING = { typed: "", found: [], error: null } as const;
