/**
 * The contract of effect sources. An effect source is a log in which another system records what really happened.
 * `assent reconcile` reads the logs and compares each effect with the actions of the ledger. Sources run in the
 * command, not in the service.
 */
import type { JsonObject } from "../domain/json.ts";

/** An event of a source's log. */
export interface SourceEvent {
  /** Id of the event, unique in the source. */
  readonly id: string;
  /** Time of the event. Milliseconds since the epoch. */
  readonly at: number;
  /** Kind of the event. Mappings select events by kind. */
  readonly event: string;
  /** Identity that caused the effect, in the notation of the source. */
  readonly actor: string;
  /** Id of the action that the agent or its credential attached to the effect; null if they attached no id. */
  readonly action_id: string | null;
  /**
   * Id shared by several events if the source records one operation as several events. They count once if the mapping
   * reads the same operation and parameters from each of them.
   */
  readonly part_of?: string;
  /** The record of the log, from which mappings read values. */
  readonly record: JsonObject;
}

/** Maps events of the source to the actions of one operation. */
export interface EffectMapping {
  readonly event: string;
  readonly tool: string;
  readonly operation: string;
  /** JSON pointers into the record, one for each parameter of the action. At least one. */
  readonly params: Readonly<Record<string, string>>;
}

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
   * Parses a file as a stream, because it can be larger than memory. Throws `SourceFault` of `assent/coverage`
   * with the line of a record that it cannot parse.
   * @param text the decoded content of the file
   */
  read(text: AsyncIterable<string>): AsyncIterable<SourceRecord>;
}
