/** Builds the message for a notifier from a row of the outbox: the current state of the action, and a link for this person. */
import type { Message, MessageAction, MessageBase, ThrottleMessage } from "../contract/notifier.ts";
import {
  type ActionRow,
  type ApprovalRow,
  type DeliveryRow,
  nullIfCorrupt,
  type Storage,
} from "../contract/storage.ts";
import type { ActionRequest } from "../domain/actions.ts";
import {
  type DecisionEntry,
  decodeEntry,
  type RedecisionEntry,
  type StopEntry,
  type ThrottleEntry,
} from "../domain/entries.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { presentRequest } from "../domain/policy/decide/shown-first.ts";
import { decodeEdit, effectiveHash, effectiveRequest } from "../domain/edited-request.ts";
import { decodeQuestions } from "../domain/questions.ts";
import { toHex } from "../domain/hash.ts";
import { principalOfOwner, principalOfKey } from "../domain/owner.ts";
import { toRfc3339 } from "../domain/time.ts";
import { makeToken, type Mac } from "../domain/tokens.ts";
import { suggestGrants } from "../policies/suggest-grants.ts";

/** A message that no longer needs to be sent, with the reason. */
export interface ObsoleteMessage {
  obsoleteReason: string;
}

export interface MessageBuilder {
  build(row: DeliveryRow): Promise<Message | ObsoleteMessage>;
}

interface MessageOptions {
  storage: Storage;
  clock(): number;
  mac: Mac;
  /** Returns the active policies, which define what approvers see first. */
  policies(): Promise<CompiledPolicySet>;
  /** Returns the address of the service for people, without a trailing slash. */
  publicUrl(): string;
  /** Names of the channels with `digest`. */
  digests?: ReadonlySet<string>;
}

export function isObsolete(built: Message | ObsoleteMessage): built is ObsoleteMessage {
  return "obsoleteReason" in built;
}

/** Returns whether the delivery is the first about its action to its recipient. */
export function isApprovalRequest({ kind }: Pick<DeliveryRow, "kind">): boolean {
  return kind === "approval_requested" || kind === "approval_escalated";
}

/** Returns whether the delivery is useless once its action has expired. */
export function expiresWithAction(row: Pick<DeliveryRow, "kind">): boolean {
  return isApprovalRequest(row) || row.kind === "approval_reminder";
}

export function createMessageBuilder({
  storage,
  clock,
  mac,
  policies,
  publicUrl,
  digests = new Set(),
}: MessageOptions): MessageBuilder {
  async function build(row: DeliveryRow): Promise<Message | ObsoleteMessage> {
    const base = { id: row.id, attempt: row.attempts + 1, to: row.recipient, at: toRfc3339(row.created_at) };
    if (row.kind === "event") return event(row, base);
    if (row.kind === "stop") return stop(row, base);
    const action = row.action_id === null ? null : await storage.action(row.action_id);
    if (action === null) return { obsoleteReason: "the action does not exist" };
    if (action.erased_at !== null) return { obsoleteReason: "the request was erased" };
    const votes = await storage.approvals(action.id);
    const set = await policies();
    const common = {
      ...base,
      channel: row.channel ?? "",
      person: row.person,
      action: describe(action, votes, set),
    };
    if (row.kind === "outcome_unknown") {
      if (action.status !== "unknown") return { obsoleteReason: "the outcome is known by now" };
      return { ...common, kind: row.kind, reference: null };
    }
    if (row.kind === "agent_throttled") return throttled(row, common);
    if (row.kind === "break_glass") return { ...common, kind: row.kind, reference: null };
    const request = await earlierRequest(row, action.id);
    if (row.kind === "approval_closed") {
      if (request?.state !== "delivered") return { obsoleteReason: "the request itself was not delivered" };
      if (request.reference === null && digests.has(row.channel ?? ""))
        return { obsoleteReason: "the channel gets digests, and no message of its own was sent for the request" };
      return { ...common, kind: row.kind, reference: request.reference };
    }
    if (action.status !== "pending_approval" || (action.expires_at ?? 0) <= clock())
      return { obsoleteReason: "the action is no longer waiting" };
    const mayGrant = row.kind !== "approval_reminder" && action.plan_id === null;
    const grants = !mayGrant ? [] : await readGrantOffers(storage, action, set);
    const principal = row.person === null ? null : principalOfOwner(row.person);
    if (votes.some((vote) => vote.principal === principal)) return { obsoleteReason: "this person has voted" };
    if (row.kind === "approval_reminder" && request?.state !== "delivered")
      return { obsoleteReason: "the request itself was not delivered" };
    const asked = { ...common.action, grants };
    return {
      ...common,
      action: asked,
      kind: row.kind,
      link: link(action, principal),
      others: [],
      reference: request?.reference ?? null,
    };
  }

  function link(action: ActionRow, principal: string | null): string {
    if (action.plan_id !== null) return `${publicUrl()}/#/plans/${action.plan_id}`;
    if (principal === null) return `${publicUrl()}/approve#${action.id}`;
    const claims = {
      action_id: action.id,
      request_hash: effectiveHash(action),
      approver: principal,
      expires_at: action.expires_at ?? 0,
    };
    return `${publicUrl()}/approve#${makeToken("link", claims, mac)}`;
  }

  /** Returns the latest request for approval that was sent to the same destination and person. */
  async function earlierRequest(row: DeliveryRow, actionId: string): Promise<DeliveryRow | undefined> {
    if (isApprovalRequest(row)) return undefined;
    const deliveries = await storage.deliveriesOfAction(actionId);
    return deliveries
      .filter(
        (other) => isApprovalRequest(other) && other.destination === row.destination && other.person === row.person,
      )
      .at(-1);
  }

  async function throttled(
    row: DeliveryRow,
    common: Omit<ThrottleMessage, "kind" | "person" | "throttle">,
  ): Promise<Message | ObsoleteMessage> {
    const [stored] = await storage.entries(row.seq, row.seq + 1);
    if (stored === undefined) return { obsoleteReason: "the entry does not exist" };
    const { requests, usual, until } = decodeEntry<ThrottleEntry>(stored.bytes);
    if (Date.parse(until) <= clock()) return { obsoleteReason: "the throttling is over" };
    return { ...common, person: row.person ?? "", kind: "agent_throttled", throttle: { requests, usual, until } };
  }

  async function stop(row: DeliveryRow, base: Omit<MessageBase, "kind">): Promise<Message | ObsoleteMessage> {
    const [stored] = await storage.entries(row.seq, row.seq + 1);
    if (stored === undefined) return { obsoleteReason: "the entry does not exist" };
    const { stop: about, change, comment, approvals, needed, by } = decodeEntry<StopEntry>(stored.bytes);
    return {
      ...base,
      kind: "stop",
      channel: row.channel ?? "",
      person: row.person,
      link: `${publicUrl()}/`,
      stop: { ...about, change, comment, approvals, needed, by: by.principal },
    };
  }

  async function event(row: DeliveryRow, base: Omit<MessageBase, "kind">): Promise<Message | ObsoleteMessage> {
    const [entry] = await storage.entries(row.seq, row.seq + 1);
    if (entry === undefined) return { obsoleteReason: "the entry does not exist" };
    return {
      ...base,
      kind: "event",
      event: {
        seq: entry.seq,
        hash: toHex(entry.leaf_hash),
        type: entry.type,
        entry: decodeEntry(entry.bytes),
      },
    };
  }

  return { build };
}

/** Earlier requests that the scopes in a message are tried on. Fewer than on the page, because bursts send many messages. */
const MAX_EARLIER = 40;

/**
 * Returns the grants that the approval page offers for a pending action. Everyone who may see it may see the earlier
 * requests of the same agent and tool.
 */
async function readGrantOffers(
  storage: Pick<Storage, "actions" | "entriesOfAction">,
  row: ActionRow,
  set: CompiledPolicySet,
): Promise<MessageAction["grants"]> {
  // A store that was tampered with must not suppress the notification.
  const entries = (await nullIfCorrupt(storage.entriesOfAction(row.id))) ?? [];
  const newest = entries.filter(({ type }) => type === "decision" || type === "redecision").at(-1);
  if (newest === undefined) return [];
  const { decision } = decodeEntry<DecisionEntry | RedecisionEntry>(newest.bytes);
  if (decision.approval?.grants === undefined) return [];
  const offers = await suggestGrants(set, row, (filter) =>
    storage.actions({ ...filter, visibility: { all: true }, limit: MAX_EARLIER }),
  );
  return (offers?.suggestions ?? []).map(({ scope, covered, requests }) => ({
    scope,
    covered,
    considered: offers?.considered ?? 0,
    requests: requests.map(({ summary }) => summary),
  }));
}

function describe(row: ActionRow, votes: readonly ApprovalRow[], set: CompiledPolicySet): MessageAction {
  const request = effectiveRequest(row) as ActionRequest;
  return {
    id: row.id,
    agent_id: row.agent_id,
    tool: row.tool,
    operation: row.operation,
    params: request.params,
    context: request.context,
    status: row.status,
    reason: row.reason,
    risk_level: row.risk_level,
    policy: row.policy,
    rule: row.rule,
    submitted_by: principalOfKey({ id: row.submitted_by, owner: row.submitted_owner }),
    request_hash: effectiveHash(row),
    ...presentRequest(set, { ...row, ...request }),
    plan: row.plan_id === null ? null : { id: row.plan_id, position: row.plan_position ?? 0 },
    edited_by: decodeEdit(row.effective)?.by ?? null,
    questions: decodeQuestions(row.questions).map(({ asked_by, question, answer }) => ({
      asked_by,
      question: question.text,
      answer: answer?.text ?? null,
    })),
    grants: [],
    quorum: row.quorum ?? 1,
    votes: votes.map((vote) => ({
      approver: vote.principal,
      approve: vote.approve,
      on_behalf_of: vote.on_behalf_of,
      break_glass: vote.break_glass,
      reason: vote.reason,
      at: toRfc3339(vote.created_at),
    })),
    created_at: toRfc3339(row.created_at),
    expires_at: row.expires_at === null ? null : toRfc3339(row.expires_at),
  };
}
