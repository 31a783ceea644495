/** Loads what the plugins of the service add to the console. */
import { type ConsolePart, setParts } from "./parts.ts";

/**
 * Sets the parts of the plugins that the document lists. Returns a message for each part that cannot be loaded.
 * @param own the parts of the document itself
 * @param bundled the parts in the bundle, keyed by plugin
 */
export async function loadParts(
  own: readonly ConsolePart[],
  bundled: Readonly<Record<string, ConsolePart>>,
): Promise<string[]> {
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
  setParts([...own, ...loaded, ...added.flat()]);
  return failed;
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
