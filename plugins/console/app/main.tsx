/** The console's entry point. The build calls `startConsole` with the parts in `plugins/<name>/page`. */
import { render } from "preact";
import { loadParts } from "./core/load-parts.ts";
import type { ConsolePart } from "./core/parts.ts";
import { OWN_PART } from "./shell/pages.ts";
import { Shell } from "./shell/shell.tsx";

/** @param bundled the parts in the bundle, keyed by plugin */
export async function startConsole(bundled: Readonly<Record<string, ConsolePart>>): Promise<void> {
  const place = document.getElementById("console");
  if (place === null) return;
  const failed = await loadParts([OWN_PART], bundled);
  // Remove the placeholder that the document shows while scripts load.
  place.replaceChildren();
  render(<Shell failed={failed} />, place);
}
