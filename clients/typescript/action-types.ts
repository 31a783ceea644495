/** Public names of the API types, and options of calls. */
import type { Action, ActionList, Event, ListedPlan, Plan, EventsQuery, ListQuery, Result, Submission } from "./api.ts";

/** A request without `meta`, which is a separate option. */
export type ActionRequest = Omit<Submission, "meta">;

export type ActionRecord = Action;

export type ActionStatus = Action["status"];

/** What the agent reports after it has run the action. */
export type ActionResult = Result;

/** Times are RFC 3339. `limit` is per page. */
export type ActionQuery = Omit<ListQuery, "limit"> & { limit?: number | string | undefined };

export type ActionPage = ActionList;

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface SubmitOptions extends CallOptions {
  /** Whether to return an open action with the same request instead of a new one. Makes a retry safe. */
  join?: boolean | undefined;
  /** Trace id, session, tool call id. Stored and displayed, but not part of the request. At most 4 KiB of JSON. */
  meta?: Record<string, unknown> | undefined;
  /** Seconds to wait for approval. */
  wait?: number | undefined;
  /** Whether to request a permit. If the permit in the response is null, the service could not issue a permit. */
  permit?: boolean | undefined;
  /** The same idempotency key with the same request always returns the same action. */
  idempotencyKey?: string | undefined;
  /** Authority under which the agent acts. Default: that of the client. Null: none. */
  authority?: string | null | undefined;
}

/** A plan with the records of its actions. */
export type PlanRecord = Plan;

/** A plan in a list, with the status of each action. */
export type PlanSummary = ListedPlan;

export interface PlanQuery {
  agent_id?: string | undefined;
  cursor?: string | undefined;
  /** Plans per page, at most 20. */
  limit?: number | string | undefined;
}

export interface SubmitPlanOptions extends CallOptions {
  /** Whether each action can start only when all earlier actions have ended. */
  ordered?: boolean | undefined;
  /** Whether the plan stops when one of its actions fails, is denied, is cancelled or expires. */
  stopOnFailure?: boolean | undefined;
  /** `meta` for every action of the plan. */
  meta?: Record<string, unknown> | undefined;
  /** The same idempotency key with the same requests always returns the same plan. Makes a retry safe. */
  idempotencyKey?: string | undefined;
  /** Authority under which the agent acts. Default: that of the client. Null: none. */
  authority?: string | null | undefined;
}

export interface PlanVoteOptions extends CallOptions {
  reason?: string | undefined;
  /** Positions (from 1) of the pending actions to reject. The vote approves the others. */
  strikes?: readonly { position: number; reason?: string }[] | undefined;
  /** `approval_token` of the plan as it was displayed. Default: read the plan again. */
  token?: string | undefined;
}

export interface WaitOptions extends CallOptions {
  /**
   * Maximum number of seconds to wait; then the pending action is returned. Default: no limit. The wait also ends when
   * an approver asks the agent a question.
   */
  timeout?: number | undefined;
}

export interface StartOptions extends CallOptions {
  /** Permit of the action. Required for a key that did not submit the action. */
  permit?: string | undefined;
  /** Id from `newAttempt`, unique to this start. Default: a new id. */
  attempt?: string | undefined;
  /**
   * `request_hash` of the record whose `params` the caller is about to run. Required if an approver changed the
   * parameters, that is, if `proposed` is not null.
   */
  requestHash?: string | undefined;
  /**
   * Whether the caller calls `inspect` before it passes the output on, if the record has `inspect`. Default false: the
   * session gets the labels of all result rules that apply when the action starts.
   */
  inspects?: boolean | undefined;
}

/** Options of `answer`, with which an agent answers an approver's question. */
export interface AnswerOptions extends CallOptions {
  /** Number of the question, starting at 1. Default: the first question without an answer. */
  number?: number | undefined;
}

export interface VoteOptions extends CallOptions {
  reason?: string | undefined;
}

/** Terms of a grant, which approves later actions of the same agent, tool and operation in advance. */
export interface GrantTerms {
  /** Duration of the grant from now, such as `8h`. */
  for: string;
  /** Maximum number of uses. */
  count: number;
  /** Condition in CEL. Default: the grant covers every request. */
  scope?: string;
  /** Maximum sum of the CEL expression `of` over all uses. */
  sum?: { of: string; at_most: number };
  /** Whether the grant ends when a use fails. */
  ends_on_failure?: boolean;
  /** Title of a task to start together with the grant. */
  task?: string;
}

export interface ApproveOptions extends VoteOptions {
  /** Grants later actions together with the approval. */
  grant?: GrantTerms | undefined;
  /** `approval_token` of the action as it was displayed. Default: read the action again. */
  token?: string | undefined;
}

/** The service's answer about an output. */
export interface Inspection {
  verdict: "allow" | "redact" | "withhold";
  /** With `redact`: what to pass on instead of the output. */
  output?: unknown;
  /** The labels of the session that the output added. */
  labels: string[];
  /** The rule that decides; null if none matched. */
  rule: { policy: string; rule: string } | null;
  /** For the agent. */
  reason: string | null;
  /** Members of the output that histories keep. The client's method `result` reports them in `meta`. */
  kept?: Record<string, unknown>;
}

export interface InspectOptions extends CallOptions {
  mediaType?: string | undefined;
}

/** A ledger entry as an event. */
export type LedgerEvent = Event;

/** Query of events. Without `after`, only new events are delivered. `type` can be an array. */
export type EventQuery = CallOptions & Omit<EventsQuery, "type"> & { type?: string | readonly string[] | undefined };
