/** A destination for events. */
import type { ApiActivity } from "./api-activity.ts";

export interface Sink {
  /**
   * Prepares for writing. Returns the sequence number and the `metadata.uid` of the last event that the sink has
   * certainly stored; null if the sink does not know.
   */
  resume(): Promise<{ sequence: number; uid: string } | null>;
  /** Resolves once the sink has stored all of these events, in this order. Rejects if that is not certain. */
  write(events: readonly ApiActivity[], signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
