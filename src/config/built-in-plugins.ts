/**
 * The built-in plugins: each folder in `plugins` with an index. Folders of `plugins` and `clients` can also contain
 * commands. No list names them, so that adding or deleting a folder adds or deletes the feature. They are imported by
 * path, because the core does not depend on them.
 */
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const EXTENSION = import.meta.url.endsWith(".ts") ? "ts" : "js";
const PLUGINS = new URL("../../plugins/", import.meta.url);
const CLIENTS = new URL("../../clients/", import.meta.url);

type Load = () => Promise<{ default?: unknown }>;

/** Returns the built-in plugins, keyed by the name of their folder, in alphabetical order. */
export function listBuiltIn(): Readonly<Record<string, Load>> {
  const urlOf = (folder: string): URL => new URL(`${folder}/index.${EXTENSION}`, PLUGINS);
  const folders = readdirSync(fileURLToPath(PLUGINS)).filter((folder) => existsSync(urlOf(folder)));
  return loadersOf(folders.map((folder) => [folder, urlOf(folder)]));
}

/**
 * Returns the commands of features: `commands/<name>` in each folder of `plugins` and `clients`, keyed by name.
 * @param command if given, returns what features add to this command, such as subcommands: `commands/<command>/<name>`
 */
export function listBuiltInCommands(command = ""): Readonly<Record<string, Load>> {
  return loadersOf(
    [PLUGINS, CLIENTS].flatMap((features) =>
      readdirSync(fileURLToPath(features)).flatMap((folder) => {
        const commands = new URL(`${folder}/commands/${command}${command && "/"}`, features);
        if (!existsSync(commands)) return [];
        const files = readdirSync(fileURLToPath(commands)).filter((file) => /^[\w-]+\.[jt]s$/.test(file));
        return files.map((file): [string, URL] => [file.slice(0, -3), new URL(file, commands)]);
      }),
    ),
  );
}

function loadersOf(modules: readonly (readonly [name: string, url: URL])[]): Readonly<Record<string, Load>> {
  const sorted = [...modules].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    sorted.map(([name, { href }]) => [name, async () => (await import(href)) as { default?: unknown }]),
  );
}
