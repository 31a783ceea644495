/**
 * Loads the plugins in the configuration. Finds built-in plugins by folder name, so that the core does not
 * import them.
 */
import { isAbsolute, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigSchema, type Config, type Section } from "../../config/index.ts";
import { findSimilarName } from "../../domain/similar-name.ts";
import { listBuiltIn } from "../../config/built-in-plugins.ts";
import type { TSchema } from "@sinclair/typebox";
import type { Plugin } from "../../plugin.ts";

export interface LoadedPlugin {
  plugin: Plugin;
  options: unknown;
  /** The plugin's name in the configuration, for messages. */
  origin: string;
  /** The key of the configuration that contains the options, if they are not under `plugins`. */
  section?: Section;
  /** Whether the operator grants the privileged host. */
  core?: boolean;
}

type StandardPlugins = ReturnType<typeof listBuiltIn>;

/** Returns the schemas of the options of the bundled plugins, by name. */
export async function standardOptions(): Promise<Record<string, TSchema>> {
  const plugins = listBuiltIn();
  const loaded = await Promise.all(Object.keys(plugins).map((name) => importPlugin(plugins, name)));
  return Object.fromEntries(loaded.flatMap(({ name, options }) => (options === undefined ? [] : [[name, options]])));
}

/** Entry in `plugins` that represents all plugins that are loaded by default. */
const ALL_BUILT_IN = "built-in";

export class PluginLoadError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "PluginLoadError";
  }
}

export async function loadPlugins(config: Config): Promise<LoadedPlugin[]> {
  const standard = listBuiltIn();
  const items = itemsOf(config);
  const loaded: LoadedPlugin[] = [];
  for (const { name, options, core } of items) {
    if (name === ALL_BUILT_IN && core !== undefined)
      throw new PluginLoadError(
        `"${ALL_BUILT_IN}" takes no "core"; list the plugin by its own name, with core: ${core}`,
      );
    const names =
      name === ALL_BUILT_IN
        ? allPluginsExcept(standard, options, config).filter((each) => !items.some((item) => item.name === each))
        : [name];
    for (const each of names) {
      const plugin = await importPlugin(standard, each);
      const isBuiltIn = Object.hasOwn(standard, each);
      loaded.push({
        plugin,
        options: name === ALL_BUILT_IN ? {} : options,
        origin: each,
        core: core ?? (isBuiltIn && plugin.core === true),
      });
    }
  }
  return loaded;
}

/**
 * Gives each section of the configuration to the plugin with its name. Throws PluginLoadError for a section without such
 * a plugin.
 */
export function assignSections(plugins: readonly LoadedPlugin[], sections: Config["sections"]): LoadedPlugin[] {
  for (const [name, { describe }] of sections) {
    const owner = plugins.find(({ plugin }) => plugin.name === name);
    const fault = owner === undefined ? unknownKey(name, plugins) : sectionFault(owner);
    if (fault !== null) throw new PluginLoadError(describe("", fault));
  }
  return plugins.map((loaded) => {
    const section = sections.get(loaded.plugin.name);
    return section === undefined ? loaded : { ...loaded, options: section.value, section };
  });
}

function sectionFault({ plugin, options }: LoadedPlugin): string | null {
  if (plugin.options === undefined) return "the plugin with this name has no options";
  return Object.keys((options ?? {}) as object).length === 0
    ? null
    : 'the plugin has options here and under "plugins"; write them once';
}

function unknownKey(name: string, plugins: readonly LoadedPlugin[]): string {
  const withOptions = plugins.flatMap(({ plugin }) => (plugin.options === undefined ? [] : [plugin.name]));
  const similar = findSimilarName(name, [...Object.keys(ConfigSchema.properties), ...withOptions]);
  return `unknown key, and no loaded plugin has this name${similar === null ? "" : `; did you mean "${similar}"?`}`;
}

/** Loads only the plugins that the configuration identifies by path. Does not call their functions. */
export async function loadPluginsByPath(config: Config): Promise<LoadedPlugin[]> {
  const items = itemsOf(config).filter(({ name }) => isPath(name));
  return Promise.all(
    items.map(async ({ name, options }) => ({ plugin: await importPlugin({}, name), options, origin: name })),
  );
}

interface PluginItem {
  name: string;
  options: Record<string, unknown>;
  core?: boolean | undefined;
}

function itemsOf({ plugins }: Config): PluginItem[] {
  return (plugins ?? [ALL_BUILT_IN]).map((item) =>
    typeof item === "string"
      ? { name: item, options: {} }
      : { name: item.name, options: item.options ?? {}, core: item.core },
  );
}

function isPath(name: string): boolean {
  return name.startsWith("./") || name.startsWith("../") || isAbsolute(name);
}

/**
 * Returns the names of all bundled plugins except those in the option `except`. Of the storages, includes only the
 * storage for the configured database.
 */
function allPluginsExcept(standard: StandardPlugins, options: Record<string, unknown>, config: Config): string[] {
  const { except = [], ...rest } = options;
  const names = Object.keys(standard);
  if (Object.keys(rest).length > 0 || !Array.isArray(except))
    throw new PluginLoadError(`"${ALL_BUILT_IN}" takes one option: except, a list of built-in plugins`);
  const wrong = except.find((name) => !names.includes(name as string)) as unknown;
  if (wrong !== undefined)
    throw new PluginLoadError(
      `"${ALL_BUILT_IN}" cannot leave out ${JSON.stringify(wrong)}: the built-in plugins are ${names.join(", ")}`,
    );
  const otherStore = config.database_url === null ? "storage-postgres" : "storage-sqlite";
  return names.filter((name) => name !== otherStore && !except.includes(name));
}

async function importPlugin(standard: StandardPlugins, name: string): Promise<Plugin> {
  const load = isPath(name)
    ? async () => {
        if (/\.[cm]?tsx?$/.test(name)) await readTypeScript();
        return (await import(pathToFileURL(resolve(name)).href)) as { default?: unknown };
      }
    : Object.hasOwn(standard, name)
      ? standard[name]
      : undefined;
  if (load === undefined) {
    throw new PluginLoadError(
      `there is no built-in plugin "${name}"; the built-in ones are ${Object.keys(standard).join(", ")}; a plugin of your own is named by path, such as "./${name}.ts"`,
    );
  }
  let module: { default?: unknown };
  try {
    module = await load();
  } catch (error) {
    const reason = asCommonJs(error)
      ? 'it is treated as CommonJS; add "type": "module" to the package.json of its folder'
      : error instanceof Error
        ? error.message
        : String(error);
    throw new PluginLoadError(`the plugin "${name}" cannot be loaded: ${reason}`, { cause: error });
  }
  const plugin = module.default as Partial<Plugin> | undefined;
  const fault = (problem: string): PluginLoadError => new PluginLoadError(`the plugin "${name}" ${problem}`);
  if (typeof plugin !== "object" || plugin === null)
    throw fault("has no default export; write export default definePlugin({ name, setup })");
  if (typeof plugin.name !== "string" || plugin.name === "")
    throw fault('has no name; write export default definePlugin({ name: "my-plugin", setup })');
  if (![plugin.setup, plugin.storage, plugin.effectSources].some((member) => typeof member === "function"))
    throw fault(
      `has no setup; write export default definePlugin({ name: ${JSON.stringify(plugin.name)}, setup: (host, options) => ({}) })`,
    );
  return plugin as Plugin;
}

/** Enables plugins in TypeScript. Deno, Bun and newer versions of Node support TypeScript; other versions need tsx. */
async function readTypeScript(): Promise<void> {
  const { bun, deno } = process.versions;
  const strips = (process.features as { typescript?: unknown }).typescript;
  if (bun !== undefined || deno !== undefined || (strips !== undefined && strips !== false)) return;
  // These sources are TypeScript, so the runtime already supports it.
  if (import.meta.url.endsWith(".ts")) return;
  try {
    const { register } = await import("tsx/esm/api");
    // Do not use a tsconfig.json, because its paths could resolve to a second copy of this package.
    register({ tsconfig: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new Error(
      `it is TypeScript, which Node ${process.version} does not read; use Node 22.18 or later, or run "npm install tsx" in this folder`,
      { cause: error },
    );
  }
}

/** Returns true if a module failed because it is CommonJS. The runtimes' own messages about this are misleading. */
function asCommonJs(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, message } = error as NodeJS.ErrnoException;
  return (
    code === "ERR_REQUIRE_CYCLE_MODULE" ||
    code === "ERR_REQUIRE_ESM" ||
    message.startsWith("Cannot use import statement outside a module")
  );
}
