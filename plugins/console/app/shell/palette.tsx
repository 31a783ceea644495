/** The command palette (Ctrl+K): opens a page, or an action by its id, and runs commands. */
import { useEffect, useRef, useState } from "preact/hooks";
import { encodeSegment } from "../core/api.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";
import type { Command, PageEntry } from "../core/parts.ts";

const ACTION_ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

interface Props {
  pages: readonly PageEntry[];
  commands: readonly Command[];
  onCommand(command: Command): void;
}

export function CommandPalette(props: Props) {
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
  return isOpen ? <PaletteDialog {...props} onClose={() => setOpen(false)} /> : null;
}

interface Target {
  key: string;
  title: string;
  icon: IconName;
  open(): void;
}

function PaletteDialog({ pages, commands, onCommand, onClose }: Props & { onClose(): void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const typed = text.trim().toLowerCase();
  const isTyped = ({ title }: { title: string }): boolean => title.toLowerCase().includes(typed);
  const toAddress = (address: string, title: string, icon: IconName): Target => ({
    key: address,
    title,
    icon,
    open: () => void (location.hash = address),
  });
  const targets: Target[] = [
    ...(ACTION_ID.test(typed)
      ? [toAddress(`#/actions/${encodeSegment(typed)}`, "Action with this id", "activity")]
      : []),
    ...pages.filter(isTyped).map(({ name, title, icon }) => toAddress(`#/${name}`, title, icon)),
    ...commands.filter(isTyped).map((command) => ({
      key: command.title,
      title: command.title,
      icon: command.icon,
      open: () => onCommand(command),
    })),
  ];
  const open = (target: Target | undefined): void => {
    if (target === undefined) return;
    onClose();
    target.open();
  };
  return (
    <Dialog title="Go to" onClose={onClose} hotkey={false}>
      <input
        ref={field}
        class="wide"
        data-focus=""
        aria-label="Page, command or action id"
        placeholder="Page, command or action id"
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
            open(targets[chosen]);
          }
        }}
      />
      <ul class="palette">
        {targets.map((target, i) => (
          <li key={target.key}>
            <button type="button" class={i === chosen ? "chosen" : ""} onClick={() => open(target)}>
              <Icon name={target.icon} />
              {target.title}
            </button>
          </li>
        ))}
      </ul>
      {targets.length === 0 ? <p class="quiet">No page or command matches.</p> : null}
    </Dialog>
  );
}
