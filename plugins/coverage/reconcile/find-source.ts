/** Finds an effect source among the configured plugins. */
import { collectFromPlugins, CommandError } from "../../../src/command.ts";
import { findSimilarName } from "../../../src/core.ts";
import type { EffectSource } from "../../../src/plugin.ts";

/** Returns the source with this name. Throws CommandError if no plugin or more than one plugin provides it. */
export async function findEffectSource(name: string, configFile: string | undefined): Promise<EffectSource> {
  const sources = await collectFromPlugins(
    configFile,
    ({ effectSources }, options) => effectSources?.(options() as never) ?? [],
  );
  sources.forEach(assertMappings);
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

function assertMappings({ name, effects }: EffectSource): void {
  const events = new Set<string>();
  for (const { event } of effects) {
    if (events.has(event)) throw new CommandError(`the source "${name}" has two mappings of the event "${event}"`);
    events.add(event);
  }
}
