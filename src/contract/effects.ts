/**
 * The contract of effect sources. An effect source is a log in which another system records what really happened.
 * `assent reconcile` reads the logs and compares each effect with the actions of the ledger. Sources run in the
 * command, not in the service.
 */
import type { EffectMapping, SourceEvent } from "../domain/effects/source-event.ts";
import type { EffectSourceOptions } from "../domain/effects/source-options.ts";

/** A record of the log, and the number of its first line. */
export interface SourceRecord {
  readonly line: number;
  /** Null for a record that is not an effect, such as a failed call. */
  readonly event: SourceEvent | null;
}

export interface EffectSource {
  /** Name in the configuration, unique among all sources. */
  readonly name: string;
  /** Name of the log's published format, such as `aws-cloudtrail`. */
  readonly format: string;
  /** Maps events to operations. Events without a mapping are counted and not compared. */
  readonly effects: readonly EffectMapping[];
  /** Patterns of the actors whose events are compared; null for all actors. */
  readonly actors: readonly string[] | null;
  /**
   * Tolerance when times are compared: the largest clock difference, plus the largest delay with which the source
   * records an effect.
   */
  readonly tolerance_seconds: number;
  /** Sentences about what the log does not contain. Each coverage statement includes them. */
  readonly cannot_see: readonly string[];
  /**
   * Parses a file as a stream, because it can be larger than memory. Throws `SourceFault` with the line of a record
   * that it cannot parse.
   * @param text the decoded content of the file
   */
  read(text: AsyncIterable<string>): AsyncIterable<SourceRecord>;
}

/**
 * Creates the sources in the options of a plugin.
 * @param describe a function that returns the members that the plugin adds to the options of one source
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
