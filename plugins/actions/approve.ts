/** Verdicts on pending actions: votes, cancellation and expiry. Each is one compare-and-set beside its entry. */
import { Refusal } from "../../src/contract/errors.ts";
import type { Credential, Host, LedgerTransaction } from "../../src/contract/host.ts";
import type { ActionRow, StorageReader } from "../../src/contract/storage.ts";
import { actorOf } from "../../src/domain/actor.ts";
import { RELATION_WORDS, type SelfRelation } from "../../src/domain/approval.ts";
import type { Actor, ApprovalEntry, DecisionEntry } from "../../src/domain/entries.ts";
import { permitTimes } from "../../src/domain/permit.ts";
import { commit } from "../../src/domain/request.ts";
import { toRfc3339 } from "../../src/domain/time.ts";
import { checkToken, readToken, type TokenVerdict } from "../../src/domain/tokens.ts";
import { maySee } from "../../src/domain/visibility.ts";
import { approvalMac, linkMac, relationOfOwner, relationTo, tokenClaims } from "./record.ts";
import type { ApprovalBody } from "./schemas.ts";

export async function visibleAction(tx: { action(id: string): Promise<ActionRow | null> }, id: string, credential: Credential): Promise<ActionRow> {
  const row = await tx.action(id);
  if (row === null || !maySee(credential.visibility, row)) {
    throw new Refusal("ACTION_NOT_FOUND", `there is no action ${id} that this key may see`);
  }
  return row;
}

/** Who votes: by a key, or by a link that was sent to one person. */
interface Voter {
  actor: Actor;
  self: SelfRelation | null;
}

/** `key_id` of votes that were given by a link. Ids of keys are UUIDs. */
export const LINK = "link";

/** Throws APPROVAL_EXPIRED for one that ran out, recorded as expired before that is said. */
export async function voteOn(host: Host, credential: Credential | null, id: string, body: ApprovalBody): Promise<ActionRow> {
  // Who has no key gets to the ledger's lock, which all decisions wait for, with a true token alone.
  if (credential === null) await voterByLink(host, host.storage, await linkedAction(host.storage, id, body.token), body.token);
  return verdictOn(host, async (tx) => {
    const who = credential === null ? null : await tx.confirm(credential);
    if (who !== null) assertScope(who);
    const row = await (who === null ? linkedAction(tx, id, body.token) : visibleAction(tx, id, who));
    const { self, actor } = who === null ? await voterByLink(host, tx, row, body.token) : voterByKey(host, row, who, body.token);
    const votes = await tx.approvals(id);
    if (votes.some((vote) => vote.principal === actor.principal)) {
      throw new Refusal("ALREADY_VOTED", `${actor.principal} has decided on this action already; a token is good for one verdict`);
    }
    if (isOverdue(row, tx.now)) return expire(tx, row);
    assertPending(row);

    const quorum = row.quorum ?? 1;
    const approvals = votes.filter((vote) => vote.approve).length + (body.approve ? 1 : 0);
    const status = !body.approve ? "denied" : approvals >= quorum ? "approved" : "pending_approval";
    const { seq } = tx.record(
      {
        ...entryOf(row, tx.now),
        verdict: body.approve ? "approve" : "deny",
        by: actor,
        comment: body.reason ?? null,
        self_approval: self !== null,
        approvals,
        quorum,
        status,
      },
      row.submitted_by,
    );
    const fresh = await tx.insertApproval({
      action_id: id,
      principal: actor.principal,
      key_id: actor.key_id,
      approve: body.approve,
      reason: body.reason ?? null,
      self_approval: self !== null,
      seq,
      created_at: tx.now,
    });
    const permit = status === "approved" ? permitTimes(tx.now, host.config.permits.valid_seconds) : null;
    const moved = await tx.updateAction(
      id,
      { status: "pending_approval", expires_after: tx.now },
      {
        status,
        updated_at: tx.now,
        ...(status === "pending_approval" ? {} : { waited_ms: Math.max(0, tx.now - row.created_at) }),
        ...(permit === null ? {} : { permit_issued_at: permit.issued_at, permit_expires_at: permit.expires_at }),
      },
    );
    if (status === "denied") await tx.releaseLimitUses(id);
    // Checked above under the same lock; if the statements still say no, nothing of this job may stand.
    if (!fresh || !moved) throw new Error(`the vote on ${id} lost a race that the ledger's lock excludes`);
    return reread(tx, id);
  });
}

export function cancelAction(host: Host, credential: Credential, id: string, reason: string | null): Promise<ActionRow> {
  return verdictOn(host, async (tx) => {
    const who = await tx.confirm(credential);
    const row = await visibleAction(tx, id, who);
    if (relationTo(row, who) === null && !who.holds("admin")) {
      throw new Refusal("NOT_THE_SUBMITTER", `only the key that submitted the action, or an admin, can cancel it`);
    }
    if (isOverdue(row, tx.now)) return expire(tx, row);
    assertPending(row);
    const approvals = (await tx.approvals(id)).filter((vote) => vote.approve).length;
    tx.record(
      { ...entryOf(row, tx.now), verdict: "cancelled", by: actorOf(who.key, who.principal), comment: reason, self_approval: false, approvals, quorum: row.quorum ?? 1, status: "cancelled" },
      row.submitted_by,
    );
    await mustMove(tx, id, { status: "pending_approval", expires_after: tx.now }, "cancelled");
    return reread(tx, id);
  });
}

/** Marks what has run out, oldest first. Answers how many. */
export function expireOverdue(host: Host, limit: number): Promise<number> {
  return host.ledger.submit(async (tx) => {
    const rows = await tx.overdueActions(tx.now, limit);
    for (const row of rows) await expire(tx, row);
    return rows.length;
  });
}

/**
 * A verdict that comes too late is the first to see the end: the expiry is committed and then said.
 * A refusal would take its record back, and a clock that is set back could open the action again.
 */
async function verdictOn(host: Host, job: (tx: LedgerTransaction) => Promise<ActionRow>): Promise<ActionRow> {
  const row = await host.ledger.submit(job);
  if (row.status === "expired") throw expired(row);
  return row;
}

/** Run out, whether it is marked so already or not. */
export function isOverdue(row: ActionRow, now: number): boolean {
  return row.status === "pending_approval" && (row.expires_at ?? 0) <= now;
}

async function expire(tx: LedgerTransaction, row: ActionRow): Promise<ActionRow> {
  const approvals = (await tx.approvals(row.id)).filter((vote) => vote.approve).length;
  tx.record(
    { ...entryOf(row, tx.now), verdict: "expired", by: null, comment: null, self_approval: false, approvals, quorum: row.quorum ?? 1, status: "expired" },
    row.submitted_by,
  );
  await mustMove(tx, row.id, { status: "pending_approval", expired_by: tx.now }, "expired");
  return reread(tx, row.id);
}

function entryOf(row: ActionRow, now: number): Pick<ApprovalEntry, "type" | "v" | "action_id" | "at" | "agent_id" | "commitment"> {
  return { type: "approval", v: 1, action_id: row.id, at: toRfc3339(now), agent_id: row.agent_id, commitment: commit(row.salt, row.request_hash) };
}

/** The scope was checked when the request came in; the key may have lost it since. */
function assertScope(who: Credential): void {
  if (!who.holds("approvals:decide")) throw new Refusal("INSUFFICIENT_SCOPE", `the key "${who.key.name}" lacks the scope approvals:decide`);
}

function voterByKey(host: Host, row: ActionRow, who: Credential, token: string): Voter {
  const self = relationTo(row, who);
  assertNotSelf(host, self);
  assertToken(checkToken("approval", token, tokenClaims(row, who.principal), approvalMac(host)));
  return { actor: actorOf(who.key, who.principal), self };
}

/** A link is good for whom it was sent to, for as long as the configuration names them in a channel of the decision. */
async function voterByLink(host: Host, tx: Pick<StorageReader, "entries">, row: ActionRow, token: string): Promise<Voter> {
  const principal = claimsOf(token).approver;
  assertToken(checkToken("link", token, tokenClaims(row, principal), linkMac(host)));
  const owner = principal.slice("owner:".length);
  if (!host.channels.holds(await channelsOf(tx, row), owner)) {
    throw new Refusal("TOKEN_INVALID", `the link was sent to ${principal}, who is in no channel of this decision any more; decide with a key, or ask the operator`);
  }
  const self = relationOfOwner(row, owner);
  assertNotSelf(host, self);
  return { actor: { key_id: LINK, principal, agent_id: null, owner }, self };
}

/** What a link may look at: its own action, and whether it can still decide. */
export async function lookByLink(host: Host, token: string): Promise<{ row: ActionRow; approver: string; refusal: Refusal | null }> {
  const { action_id, approver } = claimsOf(token);
  const row = await linkedAction(host.storage, action_id, token);
  try {
    await voterByLink(host, host.storage, row, token);
    return { row, approver, refusal: null };
  } catch (error) {
    // Who holds a true token was sent it, and may know what became of the action.
    if (!(error instanceof Refusal) || error.code !== "SELF_APPROVAL") throw error;
    return { row, approver, refusal: error };
  }
}

/** The answer to a token that was made up does not tell whether the action is there. */
async function linkedAction(tx: Pick<StorageReader, "action">, id: string, token: string): Promise<ActionRow> {
  if (claimsOf(token).action_id !== id) throw refusalOf("other_action");
  const row = await tx.action(id);
  if (row === null) throw refusalOf("altered");
  return row;
}

/** What a link token says of itself, true or not. */
function claimsOf(token: string): { action_id: string; approver: string } {
  const claims = readToken("link", token);
  if (claims === null) throw refusalOf("malformed");
  return claims;
}

/** Channels that the policy named, from the entry of the decision. */
async function channelsOf(tx: Pick<StorageReader, "entries">, row: ActionRow): Promise<readonly string[]> {
  const [entry] = await tx.entries(row.decision_seq, row.decision_seq + 1);
  if (entry === undefined) return [];
  return (JSON.parse(new TextDecoder().decode(entry.bytes)) as DecisionEntry).decision.approval?.notify ?? [];
}

function assertNotSelf(host: Host, self: SelfRelation | null): void {
  if (self !== null && !host.config.approvals.allow_self_approval) throw new Refusal("SELF_APPROVAL", `${RELATION_WORDS[self]}; somebody else must decide`);
}

function assertToken(verdict: TokenVerdict): void {
  if (verdict !== "ok") throw refusalOf(verdict);
}

function refusalOf(verdict: Exclude<TokenVerdict, "ok">): Refusal {
  switch (verdict) {
    case "malformed":
      return new Refusal("TOKEN_MALFORMED", "this is not an approval token; take `approval_token` from GET /v1/actions/{id} with your own key, or open the link as it was sent");
    case "altered":
      return new Refusal("TOKEN_INVALID", "the token does not fit this action and approver; take it anew from GET /v1/actions/{id}, or open the link as it was sent");
    case "other_action":
      return new Refusal("TOKEN_OTHER_ACTION", "the token was made for another action; take the one that this action shows");
    case "other_approver":
      return new Refusal("TOKEN_OTHER_APPROVER", "the token was made for somebody else; take your own from GET /v1/actions/{id}");
  }
}

function expired(row: ActionRow): Refusal {
  return new Refusal("APPROVAL_EXPIRED", `the time to decide ended at ${toRfc3339(row.expires_at ?? 0)}; the agent has to submit the action again`);
}

function assertPending(row: ActionRow): void {
  if (row.status === "expired") throw expired(row);
  if (row.status !== "pending_approval") {
    throw new Refusal("ACTION_NOT_PENDING", `the action is ${row.status}; only a pending one can be decided or cancelled`);
  }
}

async function mustMove(tx: LedgerTransaction, id: string, guard: Parameters<LedgerTransaction["updateAction"]>[1], status: "expired" | "cancelled"): Promise<void> {
  const moved = await tx.updateAction(id, guard, { status, updated_at: tx.now });
  // What does not happen does not count.
  await tx.releaseLimitUses(id);
  if (!moved) throw new Error(`${id} did not move to ${status} although the ledger's lock was held`);
}

async function reread(tx: LedgerTransaction, id: string): Promise<ActionRow> {
  const row = await tx.action(id);
  if (row === null) throw new Error(`the action ${id} vanished inside its transaction`);
  return row;
}
