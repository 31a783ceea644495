/** Finds an effect source among the configured plugins. */
import type { Config } from "../config/index.ts";
import type { EffectSource } from "../contract/effects.ts";
import { findSimilarName } from "../domain/similar-name.ts";
import { loadPlugins, PluginLoadError } from "../runtime/plugins/loader.ts";
import { parseOptions, PluginError } from "../runtime/plugins/plugin-options.ts";
import { CommandError } from "./command.ts";
import { loadServeConfig } from "./load-config.ts";

/** Returns the source with this name. Throws CommandError if no plugin or more than one plugin provides it. */
export async function findEffectSource(name: string, configFile: string | undefined): Promise<EffectSource> {
  const sources = await listSources(loadServeConfig(process.env, configFile));
  const [source, second] = sources.filter((each) => each.name === name);
  if (second !== undefined) throw new CommandError(`two plugins have a source "${name}"; rename one of them`);
  if (source !== undefined) return source;
  const names = sources.map((each) => each.name);
  const suggestion = findSimilarName(name, names);
  throw new CommandError(
    names.length === 0
      ? 'no plugin has a source; configure one, such as effects-cloudtrail, under "plugins" in assent.yaml'
      : `there is no source "${name}"${suggestion === null ? `; the sources are ${names.join(", ")}` : `; did you mean "${suggestion}"?`}`,
  );
}

async function listSources(config: Config): Promise<EffectSource[]> {
  try {
    return (await loadPlugins(config)).flatMap(({ plugin, options }) => {
      if (plugin.effectSources === undefined) return [];
      const sources = plugin.effectSources(parseOptions(plugin, options) as never);
      for (const source of sources) assertMappings(source);
      return sources;
    });
  } catch (error) {
    if (error instanceof PluginError || error instanceof PluginLoadError) throw new CommandError(error.message);
    throw error;
  }
}

function assertMappings({ name, effects }: EffectSource): void {
  const events = new Set<string>();
  for (const { event } of effects) {
    if (events.has(event)) throw new CommandError(`the source "${name}" has two mappings of the event "${event}"`);
    events.add(event);
  }
}
