/**
 * Keyboard shortcuts. Each page and the shell register theirs, so that one dialog lists the active keys. Keys do
 * nothing while the person types or a dialog is open.
 */
import { type Signal, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

const STORE = "assent.shortcuts";

export interface Shortcut {
  /** The keys as the list shows them. */
  keys: string;
  text: string;
  /** What single keys do, by `KeyboardEvent.key`. Absent for keys that another component handles. */
  on?: Readonly<Record<string, () => void>>;
}

interface Registered {
  scope: "page" | "everywhere";
  shortcuts: readonly Shortcut[];
}

/** Newest first, so that a page can use a key of the shell for itself. */
let registered: readonly Registered[] = [];

/** The choice in this tab. Read when it is needed, because plugins import the kit outside browsers, too. */
let choice: Signal<boolean> | null = null;
const isOn = (): Signal<boolean> => (choice ??= signal(sessionStorage.getItem(STORE) !== "off"));

/** Whether single-letter shortcuts are on in this tab. Speech input can trigger them by mistake. */
export const areShortcutsOn = (): boolean => isOn().value;
export function setShortcutsOn(next: boolean): void {
  sessionStorage.setItem(STORE, next ? "on" : "off");
  isOn().value = next;
}

/** Returns the shortcuts of the displayed page, or those of every page. */
export function listShortcuts(scope: Registered["scope"]): Shortcut[] {
  return registered.filter((each) => each.scope === scope).flatMap(({ shortcuts }) => shortcuts);
}

/**
 * Registers shortcuts while the component is displayed.
 * @example
 * useShortcuts("page", [{ keys: "/", text: "Search", on: { "/": () => field.current?.focus() } }]);
 */
export function useShortcuts(scope: Registered["scope"], shortcuts: readonly Shortcut[]): void {
  const entry = useRef<Registered>({ scope, shortcuts }).current;
  entry.shortcuts = shortcuts;
  useEffect(() => {
    if (registered.length === 0) addEventListener("keydown", runShortcut);
    registered = [entry, ...registered];
    return () => {
      registered = registered.filter((each) => each !== entry);
      if (registered.length === 0) removeEventListener("keydown", runShortcut);
    };
  }, []);
}

function runShortcut(event: KeyboardEvent): void {
  if (!isOn().value || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const { target } = event;
  const isTyping =
    !(target instanceof Element) ||
    target.closest("input:not([type=checkbox]), textarea, select, [contenteditable], dialog") !== null;
  if (isTyping || document.querySelector("dialog[open]") !== null) return;
  for (const { shortcuts } of registered)
    for (const { on } of shortcuts) {
      const run = on !== undefined && Object.hasOwn(on, event.key) ? on[event.key] : undefined;
      if (run === undefined) continue;
      event.preventDefault();
      run();
      return;
    }
}
