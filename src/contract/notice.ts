/** Kinds of messages about the service that features send to channels. */
import type { Static, TObject } from "@sinclair/typebox";
import type { EntryBody } from "../domain/entries.ts";
import type { JsonObject } from "../domain/json.ts";

/** A kind of message about the service. Each recipient gets one for each entry that is due. */
export interface NoticeKind<Options extends TObject = TObject> {
  /** Unique among all plugins, such as `stop`. */
  readonly name: string;
  /** Type of the entries that cause the message. */
  readonly entry: string;
  /** Returns whether the entry causes a message. Default: every entry of the type does. */
  isDue?(entry: EntryBody): boolean;
  /**
   * Returns the names of the channels to notify; null for all channels. Absent if the kind notifies a person instead.
   */
  channels?(options: Static<Options>): readonly string[] | null;
  /** Returns the principal to notify at each of their addresses; null for no one. */
  person?(entry: EntryBody): string | null;
  /** Returns why the message is no longer needed at `now` (milliseconds); null if it is still needed. */
  obsoleteReason?(entry: EntryBody, now: number): string | null;
  /**
   * Renders the message from its entry.
   * @param names returns the text for a principal of the entry
   */
  render(entry: EntryBody & { seq: number }, names: (principal: string) => string): Notice;
}

/** The content of a message about the service. Text in it cannot add lines. */
export interface Notice {
  /** The subject, in one line. */
  title: string;
  /** Two sentences: the event and its meaning. */
  opening: string;
  /** Names and values, the most important first. */
  facts: readonly (readonly [name: string, value: string])[];
  /** Subject of the message. A later message with the same topic can replace it on a screen. */
  topic: string;
  /** Page of the console, such as `#/coverage`; empty for the first page. */
  page: string;
  /** The entry's content for programs, such as a webhook. */
  data: JsonObject;
}
