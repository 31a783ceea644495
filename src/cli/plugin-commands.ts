/** Commands of the configured plugins: `assent <plugin name>`. */
import type { Config } from "../config/index.ts";
import { collectDeclarations, type Declarations } from "../runtime/plugins/declarations.ts";
import { loadPlugins, loadPluginsByPath, PluginLoadError, type LoadedPlugin } from "../runtime/plugins/loader.ts";
import { PluginError, assertUniqueNames, parseOptions } from "../runtime/plugins/plugin-options.ts";
import type { Plugin } from "../plugin.ts";
import { CommandError, EXIT_CODES, toPrintable, type ListedCommand } from "./command.ts";
import { createClient, withServiceErrors } from "./remote.ts";
import { loadServeConfig } from "./load-config.ts";

/** Returns what the configured plugins declare. Throws CommandError if one of them cannot be loaded. */
export async function readDeclarations(config: Config): Promise<Declarations> {
  return withPluginErrors(async () => declarationsOf(await loadPlugins(config)));
}

/**
 * Returns the commands, keyed by name. Throws CommandError if the configuration or one of its plugins cannot be loaded.
 */
export async function pluginCommands(): Promise<Map<string, ListedCommand>> {
  return withPluginErrors(async () => {
    const plugins = await loadPluginsByPath(loadServeConfig(process.env, undefined));
    declarationsOf(plugins);
    return new Map(
      plugins.flatMap(({ plugin }): [string, ListedCommand][] =>
        plugin.command === undefined ? [] : [[plugin.name, commandOf(plugin, plugin.command)]],
      ),
    );
  });
}

/** Returns what `collect` returns for the configured plugins, in their order. */
export async function collectFromPlugins<T>(
  configFile: string | undefined,
  collect: (plugin: Plugin, options: () => unknown) => readonly T[],
): Promise<T[]> {
  const config = loadServeConfig(process.env, configFile);
  return withPluginErrors(async () =>
    (await loadPlugins(config)).flatMap(({ plugin, options }) => collect(plugin, () => parseOptions(plugin, options))),
  );
}

function declarationsOf(plugins: readonly LoadedPlugin[]): Declarations {
  assertUniqueNames(plugins);
  return collectDeclarations(plugins);
}

/** Converts errors of plugins to CommandError. */
async function withPluginErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PluginError || error instanceof PluginLoadError) throw new CommandError(error.message);
    throw error;
  }
}

function commandOf({ name }: Plugin, { summary, help, run }: NonNullable<Plugin["command"]>): ListedCommand {
  return {
    summary,
    help,
    async run(args, io) {
      let code: number;
      try {
        code = await run(args, {
          // Escape control characters, because a plugin may print text from the service.
          out: (line) => io.out(toPrintable(line)),
          err: (line) => io.err(toPrintable(line)),
          call: (method, path, body) => withServiceErrors(async () => (await createClient()).call(method, path, body)),
        });
      } catch (error) {
        if (error instanceof CommandError) throw error;
        throw new CommandError(`plugin "${name}": ${error instanceof Error ? error.message : String(error)}`);
      }
      return Number.isInteger(code) ? code : EXIT_CODES.failure;
    },
  };
}
