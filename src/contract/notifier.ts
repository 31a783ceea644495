/**
 * The contract of notifiers, which send messages to people and feeds. The core writes messages to an outbox in the
 * transaction of the decision. It calls the notifier for each message until a call resolves or the message expires, so
 * a message can arrive more than once. Each destination gets one message at a time. A notifier that throws, hangs or is
 * slow delays only its own destinations.
 */
import type { JsonObject } from "../domain/json.ts";
import type { ActionStatus } from "../domain/actions.ts";
import type { Notice } from "./notice.ts";
import type { CoreDeliveryKind } from "./storage.ts";

/** The action that a message is about, as it is when the message is sent. Times are RFC 3339. */
export interface MessageAction {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context: JsonObject;
  status: ActionStatus;
  /** Why the action requires approval. */
  reason: string;
  risk_level: string | null;
  policy: string | null;
  rule: string | null;
  /** Principal of the submitter. */
  submitted_by: string;
  /** Display names of the principals in this message, keyed by principal. They identify no one. */
  names: Readonly<Record<string, string>>;
  request_hash: string;
  /**
   * One line that describes the action in the words of the policy, safe to display; null if the rule has no preview.
   */
  preview: string | null;
  /** JSON pointers of the members of `params` and `context` to display first. */
  shown_first: readonly string[];
  /**
   * Principal of the approver who changed the request, or `policies` if obligations changed it; null if it was not
   * changed. The message displays the changed request.
   */
  edited_by: string | null;
  /**
   * The action's plan, which people approve as a whole, and the action's position in it; null if the action is not part
   * of a plan.
   */
  plan: { id: string; position: number } | null;
  /** Facts that the vote is about; absent if the rule pins none, or in a message, which cannot change with them. */
  pins?: readonly { path: string; value: unknown; current?: unknown; state: string }[];
  /** Questions of approvers to the agent, and its answers. */
  questions: readonly { asked_by: string; question: string; answer: string | null }[];
  /** Permissions that the approver can add to the approval on its page, one line each, safe to display. */
  offers: readonly string[];
  /** Number of people who must approve. */
  quorum: number;
  votes: readonly {
    approver: string;
    approve: boolean;
    /** Principal of the user on whose behalf the approver voted; null if the vote is in the approver's own name. */
    on_behalf_of: string | null;
    /** Whether the approver approved without a second approver (break-glass). */
    break_glass: boolean;
    reason: string | null;
    at: string;
  }[];
  created_at: string;
  expires_at: string | null;
}

export interface MessageBase {
  /** Id of the message, which is the same for every attempt, so that receivers can detect duplicates. */
  id: string;
  /** Number of the attempt, starting at 1. */
  attempt: number;
  kind: CoreDeliveryKind | "notice";
  /** The recipient, as named in `assent.yaml` or the feed. */
  to: string;
  /** When the message was added to the outbox. RFC 3339. */
  at: string;
}

/** Requests an approval: as the first request, as an escalation from another channel, or as a reminder. */
export interface ApprovalMessage extends MessageBase {
  kind: "approval_requested" | "approval_escalated" | "approval_reminder";
  channel: string;
  /**
   * Principal of the user for whom the link is created: `user:<id>`. Null if several people can read the destination; the link then does not
   * identify a person.
   */
  person: string | null;
  /**
   * URL of the approval page. Its fragment contains a token that is a secret of `person`. For an action of a plan, the
   * URL of the plan in the console, where the person must sign in.
   */
  link: string;
  action: MessageAction;
  /**
   * More requests in the same message, each with its own link, sorted by expiry. Empty unless the channel has `digest`.
   * A notifier of such a channel must display all of them.
   */
  others: readonly { action: MessageAction; link: string }[];
  /** The reference that the notifier returned for the first request to this destination, for reminders. */
  reference: string | null;
}

/**
 * Reports that the request is closed. `action.status` is the outcome (`approved`, `denied`, `expired` or `cancelled`),
 * or a later status of an approved action (`executing`, `unknown`, `succeeded`, `failed`).
 */
export interface ClosedMessage extends MessageBase {
  /**
   * `outcome_unknown` goes to the owner of an action that was started and has no result: `action.status` is `unknown`.
   * `break_glass` reports that a person approved without a second approver in an emergency.
   */
  kind: "approval_closed" | "outcome_unknown" | "break_glass";
  channel: string;
  person: string | null;
  action: MessageAction;
  /**
   * The reference that the notifier returned for the approval request, with which it can update that message. Null if
   * the notifier returned none, and unless `kind` is `approval_closed`.
   */
  reference: string | null;
}

/** A message about the service instead of an action. A feature declares its kind (`NoticeKind`). */
export interface NoticeMessage extends MessageBase {
  kind: "notice";
  channel: string;
  person: string | null;
  /** URL of a page of the console. Contains no secret. */
  link: string;
  notice: Omit<Notice, "page"> & {
    /** Name of the kind, such as `stop`. */
    name: string;
  };
}

/** A ledger entry for a feed. Like the ledger, it contains no tokens and no parameters. */
export interface EventMessage extends MessageBase {
  kind: "event";
  event: { seq: number; hash: string; type: string; entry: JsonObject };
}

export type Message = ApprovalMessage | ClosedMessage | NoticeMessage | EventMessage;

/** Maximum retry period of a delivery. Afterwards the delivery is marked as dead. Milliseconds. */
export const DELIVERY_RETRY_MS = 3 * 86_400_000;

export interface DeliveryResult {
  /** Identifies the sent message, so that it can be updated later. At most 500 characters. */
  reference?: string;
}

/** A subscription of a destination to ledger entries, independent of policies. */
export interface Feed {
  /** The `to` of the feed's messages. */
  to: string;
  /** Entry types. Default: all types. */
  types?: readonly string[];
  /** Globs over the agent of an entry; entries without an agent match. Default: all agents. */
  agents?: readonly string[];
}

export interface Notifier {
  /** The name that channels in `assent.yaml` use. */
  readonly name: string;
  readonly feeds?: readonly Feed[];
  /**
   * Validates a `to` of the configuration at startup. Returns an error message, or null if it is valid. If `owner`
   * refers to a user, messages to this address contain a link that votes as this user, so no one else must be able to
   * read them. `owner` is null for an address that several people read.
   */
  check?(to: string, owner: string | null): string | null;
  /**
   * Sends the service's cheapest request that needs the credentials, and no message. Rejects with the reason if the
   * service does not accept them or does not answer. Absent if the service has no such request.
   */
  verify?(signal: AbortSignal): Promise<void>;
  /**
   * Makes one attempt to deliver the message. Rejects if the attempt fails. `signal` aborts on timeout and when the
   * service stops.
   */
  deliver(message: Message, signal: AbortSignal): Promise<DeliveryResult | void>;
}

/** Thrown by `deliver` to control the next attempt. */
export class NotifierError extends Error {
  /** True if a retry cannot succeed. */
  readonly permanent: boolean;
  /** Minimum delay before the next attempt, in milliseconds. More than an hour counts as an hour. */
  readonly retryAfterMs: number | null;
  constructor(message: string, options: { permanent?: boolean; retryAfterMs?: number | null; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = "NotifierError";
    this.permanent = options.permanent ?? false;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}
