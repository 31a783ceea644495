/** The command palette (Ctrl+K): opens a page, or an action by its id. */
import { useEffect, useRef, useState } from "preact/hooks";
import { encodeSegment } from "../core/api.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import type { PageEntry } from "./pages.ts";

const ACTION_ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

export function CommandPalette({ pages }: { pages: readonly PageEntry[] }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (event.key !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      if (document.querySelector("dialog[open]") === null) setOpen(true);
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
  return isOpen ? <PaletteDialog pages={pages} onClose={() => setOpen(false)} /> : null;
}

function PaletteDialog({ pages, onClose }: { pages: readonly PageEntry[]; onClose: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const typed = text.trim().toLowerCase();
  const targets = [
    ...(ACTION_ID.test(typed)
      ? [{ address: `#/actions/${encodeSegment(typed)}`, title: "Action with this id", icon: "activity" as const }]
      : []),
    ...pages
      .filter(({ title }) => title.toLowerCase().includes(typed))
      .map(({ name, title, icon }) => ({ address: `#/${name}`, title, icon })),
  ];
  const openAddress = (address: string | undefined): void => {
    if (address === undefined) return;
    location.hash = address;
    onClose();
  };
  return (
    <Dialog title="Go to" onClose={onClose} hotkey={false}>
      <input
        ref={field}
        class="wide"
        data-focus=""
        aria-label="Page or action id"
        placeholder="Page or action id"
        autocomplete="off"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined) {
            event.preventDefault();
            setChosen(Math.min(Math.max(chosen + step, 0), Math.max(targets.length - 1, 0)));
          } else if (event.key === "Enter") {
            event.preventDefault();
            openAddress(targets[chosen]?.address);
          }
        }}
      />
      <ul class="palette">
        {targets.map(({ address, title, icon }, i) => (
          <li key={address}>
            <button type="button" class={i === chosen ? "chosen" : ""} onClick={() => openAddress(address)}>
              <Icon name={icon} />
              {title}
            </button>
          </li>
        ))}
      </ul>
      {targets.length === 0 ? <p class="quiet">No page matches.</p> : null}
    </Dialog>
  );
}
