import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * The browser's own modal dialog: it traps the focus and closes on Escape.
 * @param props.hotkey whether Ctrl+Enter submits
 */
export function Dialog({
  title,
  onClose,
  children,
  hotkey = true,
}: {
  title: string;
  onClose: () => void;
  children?: ComponentChildren;
  hotkey?: boolean;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  // Before the next key arrives, so that the dialog gets it.
  useLayoutEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    // Focus without scrolling, so that the top of the dialog stays in view.
    ref.current?.querySelector<HTMLElement>("[data-focus]")?.focus({ preventScroll: true });
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  // Require Ctrl or Cmd, because Enter inserts a line feed in a text area.
  const submit = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (hotkey) ref.current?.querySelector("form")?.requestSubmit();
  };
  return (
    <dialog ref={ref} aria-labelledby="dialog-title" onClose={onClose} onKeyDown={submit}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}
