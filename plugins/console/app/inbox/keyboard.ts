/** Single-letter shortcuts of the inbox. They do nothing while the person types or a dialog is open. */
import { useEffect, useRef, useState } from "preact/hooks";

const STORE = "assent.shortcuts";

interface ShortcutHandlers {
  step(by: 1 | -1): void;
  choose(approve: boolean): void;
  undo(): void;
  select(): void;
  search(): void;
  help(): void;
}

/** Returns whether the shortcuts are on, and a function that turns them on or off for this tab. */
export function useShortcuts(commands: ShortcutHandlers): { isOn: boolean; setOn(isOn: boolean): void } {
  const [isOn, setOn] = useState(sessionStorage.getItem(STORE) !== "off");
  const latest = useRef(commands);
  latest.current = commands;
  useEffect(() => {
    if (!isOn) return undefined;
    const listen = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      const { target } = event;
      if (!(target instanceof Element) || target.closest("input:not([type=checkbox]), textarea, select, dialog"))
        return;
      const run: Record<string, () => void> = {
        j: () => latest.current.step(1),
        k: () => latest.current.step(-1),
        a: () => latest.current.choose(true),
        d: () => latest.current.choose(false),
        u: () => latest.current.undo(),
        x: () => latest.current.select(),
        "/": () => latest.current.search(),
        "?": () => latest.current.help(),
      };
      const command = run[event.key];
      if (command === undefined) return;
      event.preventDefault();
      command();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [isOn]);
  return {
    isOn,
    setOn(next) {
      sessionStorage.setItem(STORE, next ? "on" : "off");
      setOn(next);
    },
  };
}
