/** Opens the command palette with Ctrl+K. */
import { useEffect, useState } from "preact/hooks";
import type { Command, PageEntry } from "../core/parts.ts";
import { PaletteDialog } from "./palette-dialog.tsx";

interface Props {
  pages: readonly PageEntry[];
  commands: readonly Command[];
  onCommand(command: Command): void;
  onSignOut(): void;
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
