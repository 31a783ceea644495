/** Events of another system's log, and how they are mapped to operations. */
import type { JsonObject } from "../json.ts";

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
   * Id that several events share if the source recorded one operation with several events. Such events count once if
   * the mapping reads the same operation and parameters from them.
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
  /** For each parameter of the action, the JSON pointer of its value in the record. At least one. */
  readonly params: Readonly<Record<string, string>>;
}
