/**
 * The contract of effect sources: logs of other systems that record what really happened there. `assent reconcile` reads
 * them and compares each effect with the actions of the ledger. Sources run in the command, not in the service.
 */
import type { EffectMapping, SourceEvent } from "../domain/effects/match-effects.ts";
import type { EffectSourceOptions } from "../domain/effects/source-options.ts";

/** A record of the log, and the line on which it starts. */
export interface SourceRecord {
  readonly line: number;
  /** Null for a record that is no effect, such as a call that failed. */
  readonly event: SourceEvent | null;
}

export interface EffectSource {
  /** Name in the configuration, unique among all sources. */
  readonly name: string;
  /** Name of the log's published format, such as `aws-cloudtrail`. */
  readonly format: string;
  /** Which events are effects of which operation. Events without a mapping are counted, and not compared. */
  readonly effects: readonly EffectMapping[];
  /** Patterns of the actors whose events are compared. Null for all. */
  readonly actors: readonly string[] | null;
  /** By how much the source's clock can differ, and how late it can record an effect. */
  readonly tolerance_seconds: number;
  /** Sentences that say what the log does not contain. They are part of each coverage statement. */
  readonly cannot_see: readonly string[];
  /**
   * Parses one file in pieces, so that a file of any size fits in memory. Throws `SourceFault` with the line of a record
   * that it cannot read.
   * @param text the decoded file
   */
  read(text: AsyncIterable<string>): AsyncIterable<SourceRecord>;
}

/**
 * Creates the sources that the options of a plugin name.
 * @param describe returns what the plugin adds to the options of one source
 * @example
 * createEffectSources(sources, () => ({ format: "my-log", cannot_see: [], read: readMyLog }));
 */
export function createEffectSources<Options extends EffectSourceOptions>(
  sources: Readonly<Record<string, Options>>,
  describe: (options: Options) => Pick<EffectSource, "format" | "cannot_see" | "read">,
): EffectSource[] {
  return Object.entries(sources).map(([name, options]) => ({
    name,
    effects: options.effects,
    actors: options.actors ?? null,
    tolerance_seconds: options.tolerance_seconds,
    ...describe(options),
  }));
}
