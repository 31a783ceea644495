/**
 * What tells people. The core keeps an outbox, written in the transaction of the decision, and calls a notifier for
 * each message until it resolves: at least once, one at a time for each destination. A notifier that throws, hangs or is
 * slow delays its own destination and nothing else.
 */
import type { JsonObject } from "../domain/json.ts";
import type { ActionStatus } from "../domain/actions.ts";
import type { DeliveryKind } from "./storage.ts";

/** The action that a message is about, as it stands when the message is sent. Times are RFC 3339. */
export interface MessageAction {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context: JsonObject;
  status: ActionStatus;
  /** Why a person is asked. */
  reason: string;
  risk_level: string | null;
  policy: string | null;
  rule: string | null;
  /** Principal that submitted it. */
  submitted_by: string;
  request_hash: string;
  /** JSON pointers of the members of `params` and `context` that the policy names: to show first. */
  shown_first: readonly string[];
  /** How many people must approve. */
  quorum: number;
  votes: readonly { approver: string; approve: boolean; reason: string | null; at: string }[];
  created_at: string;
  expires_at: string | null;
}

export interface MessageBase {
  /** The same for every attempt, so that receivers recognise a repeat. */
  id: string;
  /** From 1. */
  attempt: number;
  kind: DeliveryKind;
  /** Whom or what to tell, as `assent.yaml` or the feed names it. */
  to: string;
  /** When it was put into the outbox. RFC 3339. */
  at: string;
}

/** Asks somebody to decide: at first, because another channel has not decided, or as a reminder. */
export interface ApprovalMessage extends MessageBase {
  kind: "approval_requested" | "approval_escalated" | "approval_reminder";
  channel: string;
  /** Owner that the link is made for; null for a place that several people see, where the link names nobody. */
  person: string | null;
  /** Opens the approval page. The token stands in its fragment. It is a secret of `person`. */
  link: string;
  action: MessageAction;
  /** What the request to this destination answered, for reminders. */
  reference: string | null;
}

/**
 * The request is closed: `action.status` says how (`approved`, `denied`, `expired` or `cancelled`), or what came of an
 * approval meanwhile (`executing`, `succeeded`, `failed`).
 */
export interface ClosedMessage extends MessageBase {
  kind: "approval_closed";
  channel: string;
  person: string | null;
  action: MessageAction;
  /** What the request to this destination answered: to change that message in place. */
  reference: string | null;
}

/** Decisions were halted, let go on, or somebody wants that. */
export interface StopMessage extends MessageBase {
  kind: "stop";
  channel: string;
  person: string | null;
  /** The console. Nothing secret is in it. */
  link: string;
  stop: {
    id: string;
    /** `lift_asked`: by fewer people than it takes; it still holds. */
    change: "placed" | "lift_asked" | "lifted";
    /** Globs, and the name of a policy: all must fit. Null for every one. */
    agent: string | null;
    tool: string | null;
    policy: string | null;
    reason: string;
    /** When it ends by itself; null when never. */
    until: string | null;
    /** Principal that placed it, or asked for it to be lifted. */
    by: string;
    /** Why it is to be lifted. */
    comment: string | null;
    /** How many people have asked for it to be lifted, and how many that takes. */
    approvals: number;
    needed: number;
  };
}

/** An entry of the ledger, for feeds. It holds no token and no parameters, as the ledger does. */
export interface EventMessage extends MessageBase {
  kind: "event";
  event: { seq: number; hash: string; type: string; entry: JsonObject };
}

export type Message = ApprovalMessage | ClosedMessage | StopMessage | EventMessage;

/** How long a message is retried before it is given up. Milliseconds. */
export const DELIVERY_RETRY_MS = 3 * 86_400_000;

export interface Delivered {
  /** At most 500 characters, to find the message again. */
  reference?: string;
}

/** Entries of the ledger that a destination wants, without a policy naming it. */
export interface Feed {
  /** `to` of its messages. */
  to: string;
  /** Entry types; all when absent. */
  types?: readonly string[];
  /** Globs over the agent of an entry; entries about no agent pass. All when absent. */
  agents?: readonly string[];
}

export interface Notifier {
  /** What channels call it. */
  readonly name: string;
  readonly feeds?: readonly Feed[];
  /**
   * Says what is wrong with a `to` of the configuration; null when nothing is. Asked at start. With a `person` (owner), what is
   * sent there decides as them, so nobody else may see it; null for a place.
   */
  check?(to: string, person: string | null): string | null;
  /** One attempt. Rejects when it was not delivered; `signal` aborts when the time is over or the service stops. */
  deliver(message: Message, signal: AbortSignal): Promise<Delivered | void>;
}

/** Thrown by `deliver` to say more than that it failed. */
export class NotifierError extends Error {
  /** Trying again cannot help. */
  readonly permanent: boolean;
  /** The least wait before the next attempt. Milliseconds. */
  readonly retryAfterMs: number | null;
  constructor(message: string, options: { permanent?: boolean; retryAfterMs?: number | null; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = "NotifierError";
    this.permanent = options.permanent ?? false;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}
