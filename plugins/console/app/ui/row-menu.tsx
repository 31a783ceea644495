/** The commands of one row of a list: a plain button for one command, a menu for several. */
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { renderPlain } from "./format.ts";
import { Icon } from "./icons.tsx";

/** Pixels. */
const COMMAND_HEIGHT = 40;

export interface RowCommand {
  /** Text of the button, such as "Deactivate…". */
  text: string;
  /** Its name for screen readers, with the object of the row: "Deactivate Ada". */
  label: string;
  isDanger?: boolean;
  onChoose(): void;
}

/**
 * @param props.of name of the row's object
 * @param props.commands those that are null are not offered
 */
export function RowMenu({ of, commands }: { of: string; commands: readonly (RowCommand | null)[] }) {
  const offered = commands.filter((command) => command !== null);
  const [only] = offered;
  if (only === undefined) return null;
  return (
    <span class="row-menu">
      {offered.length === 1 ? <CommandButton {...only} /> : <Menu name={renderPlain(of)} commands={offered} />}
    </span>
  );
}

/** The list is in the top layer, because the table would clip it. It has no nodes while it is closed. */
function Menu({ name, commands }: { name: string; commands: readonly RowCommand[] }) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const list = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    const menu = list.current;
    const from = button.current?.getBoundingClientRect();
    if (!isOpen || menu === null || from === undefined) return;
    const isAbove = from.bottom + commands.length * COMMAND_HEIGHT > innerHeight;
    menu.style.right = `${document.documentElement.clientWidth - from.right}px`;
    menu.style.top = isAbove ? "auto" : `${from.bottom}px`;
    menu.style.bottom = isAbove ? `${innerHeight - from.top}px` : "auto";
  }, [isOpen]);
  return (
    <>
      <button
        ref={button}
        type="button"
        class="icon-button"
        popovertarget={id}
        aria-label={`Commands for ${name}`}
        aria-expanded={isOpen}
      >
        <Icon name="ellipsis" />
      </button>
      <div
        ref={list}
        id={id}
        class="row-commands"
        popover="auto"
        onBeforeToggle={({ newState }) => setOpen(newState === "open")}
        onToggle={() => list.current?.querySelector("button")?.focus()}
        onClick={() => list.current?.hidePopover()}
      >
        {isOpen ? commands.map((command) => <CommandButton key={command.text} {...command} />) : null}
      </div>
    </>
  );
}

/** The button of a command, for pages about one object. */
export function CommandButton({ text, label, isDanger = false, onChoose }: RowCommand) {
  return (
    <button type="button" class={isDanger ? "small danger" : "small"} aria-label={label} onClick={onChoose}>
      {text}
    </button>
  );
}
