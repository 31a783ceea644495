/** What the client's callers write and read: the document's types by their public names, and how a call is made. */
import type { Action, ActionList, Event, EventsQuery, ListQuery, Result, Submission } from "./api.ts";

/** `meta` is given beside it. */
export type ActionRequest = Omit<Submission, "meta">;

export type ActionRecord = Action;

export type ActionStatus = Action["status"];

export type ActionResult = Result;

/** Times are RFC 3339; the limit is of one page. */
export type ActionQuery = Omit<ListQuery, "limit"> & { limit?: number | string | undefined };

export type ActionPage = ActionList;

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface SubmitOptions extends CallOptions {
  /** The open action of the same request instead of another one, if there is one: asking again is safe. */
  join?: boolean | undefined;
  /** Trace id, session, tool call id: kept and shown, and no part of what is asked. At most 4 KiB of JSON. */
  meta?: Record<string, unknown> | undefined;
  /** Seconds to wait for a verdict. */
  wait?: number | undefined;
  /** Ask for a permit in the answer, where the action may start. Null there: none could be made, and `permit` says why. */
  permit?: boolean | undefined;
  /** The same key with the same request gives the same action, for ever. */
  idempotencyKey?: string | undefined;
}

export interface WaitOptions extends CallOptions {
  /** Seconds after which the action is given as it stands. Default: until there is a verdict. */
  timeout?: number | undefined;
}

export interface StartOptions extends CallOptions {
  /** Needed by a key that did not submit the action. */
  permit?: string | undefined;
  /** From `newAttempt`, and of this start alone. Default: a new one. */
  attempt?: string | undefined;
}

export interface VoteOptions extends CallOptions {
  reason?: string | undefined;
}

/** One entry of the ledger, as it is followed. */
export type LedgerEvent = Event;

/** Without `after`: what happens from now on. Types of entries may be a list. */
export type EventQuery = CallOptions & Omit<EventsQuery, "type"> & { type?: string | readonly string[] | undefined };
