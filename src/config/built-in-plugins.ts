/**
 * The built-in plugins: each folder in `plugins` with an index. No list names them, so that adding or deleting a folder
 * adds or deletes the feature. They are imported by path, because the core does not depend on plugins.
 */
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const EXTENSION = import.meta.url.endsWith(".ts") ? "ts" : "js";
const FOLDER = new URL("../../plugins/", import.meta.url);

type Load = () => Promise<{ default?: unknown }>;

/** Returns the modules with this name, keyed by the name of their folder, in alphabetical order. */
export function listBuiltIn(module: "index" | "command"): Readonly<Record<string, Load>> {
  const urlOf = (folder: string): URL => new URL(`${folder}/${module}.${EXTENSION}`, FOLDER);
  const folders = readdirSync(fileURLToPath(FOLDER)).filter((folder) => existsSync(urlOf(folder)));
  return Object.fromEntries(
    folders.sort().map((folder) => [folder, async () => (await import(urlOf(folder).href)) as { default?: unknown }]),
  );
}
