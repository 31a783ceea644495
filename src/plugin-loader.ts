/** Finds the plugins that the configuration names. Built-in ones are found by folder name, so that the core imports none. */
import { isAbsolute, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Config } from "./config.ts";
import type { Plugin } from "./plugin.ts";

export interface LoadedPlugin {
  plugin: Plugin;
  options: unknown;
  /** How it was named, for messages. */
  origin: string;
}

/** All that come with the package. */
export const BUILT_IN = ["storage-sqlite", "storage-postgres", "policy-files", "policy-git", "actions", "policies", "api-keys", "agents", "analytics", "events", "provenance", "replay", "health", "metrics", "deliveries", "notify-webhook", "notify-slack", "notify-email", "docs", "console"] as const;

/** In `plugins`, stands for every plugin that is loaded when nothing is named. */
const ALL = "built-in";

export class PluginLoadError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "PluginLoadError";
  }
}

export async function loadPlugins(config: Config): Promise<LoadedPlugin[]> {
  const named = config.plugins ?? defaultPlugins(config);
  const loaded: LoadedPlugin[] = [];
  for (const item of named) {
    const { name, options } = typeof item === "string" ? { name: item, options: {} } : { name: item.name, options: item.options ?? {} };
    if (name === ALL) {
      const own = named.map((other) => (typeof other === "string" ? other : other.name));
      for (const each of allBut(options, config)) if (!own.includes(each)) loaded.push({ plugin: await importPlugin(each), options: {}, origin: each });
      continue;
    }
    loaded.push({ plugin: await importPlugin(name), options, origin: name });
  }
  return loaded;
}

/** What serves when `plugins` is absent: everything, on the store that the configuration has an address for. */
export function defaultPlugins(config: Config): string[] {
  const other = config.database_url === null ? "storage-postgres" : "storage-sqlite";
  return BUILT_IN.filter((name) => name !== other);
}

/** The default ones without those that `except` names: what is new in a later version comes along. One that stands in the list itself, with options, is not loaded twice. */
function allBut(options: Record<string, unknown>, config: Config): string[] {
  const { except = [], ...rest } = options;
  const known = BUILT_IN as readonly string[];
  if (Object.keys(rest).length > 0 || !Array.isArray(except)) throw new PluginLoadError(`"${ALL}" takes one option: except, a list of built-in plugins`);
  const wrong = except.find((name) => !known.includes(name as string)) as unknown;
  if (wrong !== undefined) throw new PluginLoadError(`"${ALL}" cannot leave out ${JSON.stringify(wrong)}: the built-in plugins are ${known.join(", ")}`);
  return defaultPlugins(config).filter((name) => !except.includes(name));
}

async function importPlugin(name: string): Promise<Plugin> {
  const isPath = name.startsWith("./") || name.startsWith("../") || isAbsolute(name);
  if (!isPath && !(BUILT_IN as readonly string[]).includes(name)) {
    throw new PluginLoadError(`there is no built-in plugin "${name}"; the built-in ones are ${BUILT_IN.join(", ")}; a plugin of your own is named by path, such as "./${name}.ts"`);
  }
  const url = isPath ? pathToFileURL(resolve(name)).href : new URL(`../plugins/${name}/index.ts`, import.meta.url).href;
  let module: { default?: unknown };
  try {
    module = (await import(url)) as { default?: unknown };
  } catch (error) {
    const why = asCommonJs(error) ? 'it is taken for CommonJS; write "type": "module" into the package.json of its folder' : error instanceof Error ? error.message : String(error);
    throw new PluginLoadError(`the plugin "${name}" cannot be loaded: ${why}`, { cause: error });
  }
  const plugin = module.default as Partial<Plugin> | undefined;
  const fault = (what: string): PluginLoadError => new PluginLoadError(`the plugin "${name}" ${what}`);
  if (typeof plugin !== "object" || plugin === null) throw fault("has no default export; write export default definePlugin({ name, setup })");
  if (typeof plugin.name !== "string" || plugin.name === "") throw fault('has no name; write export default definePlugin({ name: "my-plugin", setup })');
  if (typeof plugin.setup !== "function") throw fault(`has no setup; write export default definePlugin({ name: ${JSON.stringify(plugin.name)}, setup: (host, options) => ({}) })`);
  return plugin as Plugin;
}

/** The runtimes' own words for it speak of cycles and of require. */
function asCommonJs(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ERR_REQUIRE_CYCLE_MODULE" || code === "ERR_REQUIRE_ESM" || message.startsWith("Cannot use import statement outside a module");
}
