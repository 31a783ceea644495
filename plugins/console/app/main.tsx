/** The console's entry point. The build calls `startConsole` with the parts in `plugins/<name>/page`. */
import { render } from "preact";
import { type ConsolePart, setParts } from "./core/parts.ts";
import { OWN_PART } from "./shell/pages.ts";
import { Shell } from "./shell/shell.tsx";

/** @param bundled the parts in the bundle, keyed by plugin */
export async function startConsole(bundled: Readonly<Record<string, ConsolePart>>): Promise<void> {
  const place = document.getElementById("console");
  if (place === null) return;
  const loaded = namesIn("assent-plugins").flatMap((name) => (Object.hasOwn(bundled, name) ? [bundled[name]!] : []));
  const failed: string[] = [];
  const added = await Promise.all(
    namesIn("assent-pages").map(async (name) => {
      try {
        return [await importPart(name)];
      } catch (error) {
        failed.push(`The pages of the plugin ${decodeURIComponent(name)} cannot be loaded: ${String(error)}`);
        return [];
      }
    }),
  );
  setParts([OWN_PART, ...loaded, ...added.flat()]);
  // Remove the placeholder that the document shows while scripts load.
  place.replaceChildren();
  render(<Shell failed={failed} />, place);
}

/** Returns the names of plugins that the document lists, with percent-encoding. */
function namesIn(meta: string): string[] {
  const content = document.querySelector<HTMLMetaElement>(`meta[name="${meta}"]`)?.content ?? "";
  return content.split(" ").filter((name) => name !== "");
}

/** Imports what a third-party plugin adds. */
async function importPart(plugin: string): Promise<ConsolePart> {
  const address = new URL(`pages/${plugin}.js`, import.meta.url).href;
  const { default: part } = (await import(address)) as { default?: ConsolePart };
  if (part === undefined) throw new Error("its module has no default export");
  return part;
}
