/** Verdicts on pending actions: votes, cancellation and expiry. Each is one compare-and-set beside its entry. */
import {
  toActor,
  confirmWithScope,
  type Credential,
  type Host,
  type LedgerTransaction,
  Refusal,
  toRfc3339,
} from "../../src/plugin.ts";
import type { ActionRow, ApprovalRow, StartableCursor } from "../../src/storage/index.ts";
import {
  actionEntryFields,
  principalsBehindVote,
  cancellationEntry,
  countPeople,
  rejectionHoldMs,
  approvalValidityMs,
} from "../../src/core.ts";
import {
  requireMoreApprovals,
  reevaluateAction,
  recordDenial,
  isDeniedByRedecision,
  noLongerAllowedError,
  resolveOutcome,
} from "./redecision.ts";
import { releaseUses } from "./limits.ts";
import { verifyAgainstLedger } from "./verify-record.ts";
import { assertNotErased, isOverdue, isStartable, rereadAction, visibleAction } from "./rows.ts";
import type { ApprovalBody } from "./schemas.ts";
import { isSubmitter } from "./self-approval.ts";
import { findLinkedAction, verifyKeyVoter, verifyLinkVoter } from "./voter.ts";

/** Returns the action and the votes on it as this vote left them. Throws APPROVAL_EXPIRED for one that ran out, and NO_LONGER_ALLOWED for one that is denied now: recorded before that is said. */
export async function voteOn(
  host: Host,
  by: { credential: Credential; id: string } | "link",
  body: ApprovalBody,
): Promise<{ row: ActionRow; votes: readonly ApprovalRow[] }> {
  let votesSoFar: readonly ApprovalRow[] = [];
  // Without a key only a valid token leads to the ledger's lock, which all decisions wait for.
  if (by === "link")
    await verifyLinkVoter(host, host.storage, await findLinkedAction(host.storage, body.token), body.token);
  const row = await transactAndReport(host, async (tx) => {
    const who = by === "link" ? null : await confirmWithScope(tx, by.credential, "approvals:decide");
    let row = await (by === "link" || who === null ? findLinkedAction(tx, body.token) : visibleAction(tx, by.id, who));
    const { id } = row;
    assertNotErased(row);
    const { self, actor } =
      who === null ? await verifyLinkVoter(host, tx, row, body.token) : verifyKeyVoter(host, row, who, body.token);
    const votes = await tx.approvals(id);
    const { first, newest } = await verifyAgainstLedger(host, tx, row, votes);
    if (votes.some((vote) => vote.principal === actor.principal)) {
      throw new Refusal(
        "ALREADY_VOTED",
        `${actor.principal} has decided on this action already; a token is good for one verdict`,
      );
    }
    if (isOverdue(row, tx.now)) return expirePending(tx, row);
    assertPending(row);
    const people = votes.filter((vote) => vote.approve).map((vote) => principalsBehindVote(host, vote));
    // As it was asked for, or for less where the policies of now say so.
    let validFor = approvalValidityMs(newest.decision.approval ?? first.decision.approval);
    if (body.approve) {
      const before = countPeople(people);
      people.push(principalsBehindVote(host, actor));
      if (countPeople(people) <= before)
        throw new Refusal(
          "ALREADY_VOTED",
          `the keys of ${actor.principal} and of somebody who approved were made by one key, or one made the other: whoever makes a key stands behind its votes, and they count as one person. It can still deny; for another vote, take a key from another maker or a link from a channel, or ask the operator about approvals.trust_key_makers`,
        );
      const again = await reevaluateAction(tx, row, first);
      const cause = { occasion: "vote", by: actor } as const;
      const outcome = resolveOutcome(again, row.quorum ?? 1);
      if (outcome === "denied") return recordDenial(tx, row, again, cause);
      // The vote counts, for more than were asked before.
      if (outcome === "pending_approval") row = await requireMoreApprovals(tx, row, again, cause);
      const { approval } = again.decision;
      if (approval !== null) validFor = Math.min(validFor, approvalValidityMs(approval));
    }

    const quorum = row.quorum ?? 1;
    const approvals = countPeople(people);
    const status = !body.approve ? "denied" : approvals >= quorum ? "approved" : "pending_approval";
    const approvedUntil = status === "approved" ? tx.now + validFor : null;
    const holdsFor = status === "denied" ? rejectionHoldMs(newest.decision.approval ?? first.decision.approval) : 0;
    const rejectionUntil = holdsFor > 0 ? tx.now + holdsFor : null;
    const { seq } = tx.record(
      {
        type: "approval",
        v: 4,
        ...actionEntryFields(row, tx.now),
        verdict: body.approve ? "approve" : "deny",
        by: actor,
        comment: body.reason ?? null,
        self_approval: self !== null,
        approvals,
        quorum,
        status,
        approved_until: approvedUntil === null ? null : toRfc3339(approvedUntil),
        rejection_until: rejectionUntil === null ? null : toRfc3339(rejectionUntil),
      },
      row.submitted_by,
    );
    const vote = {
      action_id: id,
      principal: actor.principal,
      key_id: actor.key_id,
      approve: body.approve,
      reason: body.reason ?? null,
      self_approval: self !== null,
      seq,
      created_at: tx.now,
    };
    const fresh = await tx.insertApproval(vote);
    votesSoFar = [...votes, vote];
    const moved = await tx.updateAction(
      id,
      { status: "pending_approval", expires_after: tx.now },
      {
        status,
        updated_at: tx.now,
        ...(status === "pending_approval" ? {} : { waited_ms: Math.max(0, tx.now - row.created_at) }),
        ...(approvedUntil === null ? {} : { approved_until: approvedUntil }),
        ...(rejectionUntil === null ? {} : { rejection_until: rejectionUntil }),
      },
    );
    if (status === "denied") await releaseUses(tx, row);
    // Checked above under the same lock; if the statements still say no, nothing of this job may stand.
    if (!fresh || !moved) throw new Error(`the vote on ${id} lost a race that the ledger's lock excludes`);
    return rereadAction(tx, id);
  });
  return { row, votes: votesSoFar };
}

export function cancelAction(
  host: Host,
  credential: Credential,
  id: string,
  reason: string | null,
): Promise<ActionRow> {
  return transactAndReport(host, async (tx) => {
    const who = await tx.confirm(credential);
    const row = await visibleAction(tx, id, who);
    if (!isSubmitter(row, who) && !who.hasScope("admin")) {
      throw new Refusal("NOT_THE_SUBMITTER", `only the key that submitted the action, or an admin, can cancel it`);
    }
    if (isOverdue(row, tx.now)) return expirePending(tx, row);
    // What may start may have run already, so that only an admin ends it: what is cancelled then counts against no limit.
    const startable = isStartable(row, tx.now);
    if (!(startable && who.hasScope("admin"))) assertPending(row);
    const approvals = (await tx.approvals(id)).filter((vote) => vote.approve).length;
    const by = toActor(who.key, who.principal);
    tx.record(cancellationEntry(row, tx.now, { by, comment: reason, approvals }), row.submitted_by);
    const guard = startable
      ? { status: row.status, approved_after: tx.now }
      : { status: row.status, expires_after: tx.now };
    await updateStatus(tx, id, guard, "cancelled");
    // An admin who ends what may start says that it has not run.
    if (startable) await tx.releaseLimitUses(id);
    else await releaseUses(tx, row);
    return rereadAction(tx, id);
  });
}

/** Marks what has run out, oldest first. Returns how many. */
export function expireOverdue(host: Host, limit: number): Promise<number> {
  return host.ledger.transact(async (tx) => {
    const rows = await tx.overdueActions(tx.now, limit);
    for (const row of rows) await expirePending(tx, row);
    return rows.length;
  });
}

/** Marks what nobody started in its time, from a place of the line on. Answers the next place; null when nothing was over. */
export function expireUnstarted(host: Host, from: StartableCursor, limit: number): Promise<StartableCursor | null> {
  return host.ledger.transact(async (tx) => {
    const rows = await tx.startableActions("approved", from, limit);
    const over = rows.filter(({ approved_until }) => (approved_until ?? tx.now) <= tx.now);
    for (const row of over)
      if (row.erased_at === null && (await matchesLedger(host, tx, row))) await expireUnstartedAction(tx, row);
    const last = over.at(-1);
    return last === undefined ? null : { approved_until: last.approved_until ?? 0, decision_seq: last.decision_seq };
  });
}

/** What was altered is evidence, and stays. */
async function matchesLedger(host: Host, tx: LedgerTransaction, row: ActionRow): Promise<boolean> {
  try {
    await verifyAgainstLedger(host, tx, row);
    return true;
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}

/**
 * A verdict that comes too late is the first to see the end: the expiry is committed and then said.
 * A refusal would take its record back, and a clock that is set back could open the action again.
 */
async function transactAndReport(host: Host, job: (tx: LedgerTransaction) => Promise<ActionRow>): Promise<ActionRow> {
  const row = await host.ledger.transact(job);
  if (row.status === "expired") throw approvalExpiredError(row);
  if (isDeniedByRedecision(row)) throw noLongerAllowedError(row);
  return row;
}

async function expirePending(tx: LedgerTransaction, row: ActionRow): Promise<ActionRow> {
  await recordExpiry(tx, row);
  await updateStatus(tx, row.id, { status: "pending_approval", expired_by: tx.now }, "expired");
  await releaseUses(tx, row);
  return rereadAction(tx, row.id);
}

/** It goes on to count against limits: a tool that checks permits by itself may have run it. */
async function expireUnstartedAction(tx: LedgerTransaction, row: ActionRow): Promise<void> {
  await recordExpiry(tx, row);
  const moved = await tx.updateAction(row.id, { status: "approved" }, { status: "expired", updated_at: tx.now });
  if (!moved) throw new Error(`${row.id} did not expire although the ledger's lock was held`);
}

async function recordExpiry(tx: LedgerTransaction, row: ActionRow): Promise<void> {
  const approvals = (await tx.approvals(row.id)).filter((vote) => vote.approve).length;
  tx.record(
    {
      type: "approval",
      v: 4,
      ...actionEntryFields(row, tx.now),
      verdict: "expired",
      by: null,
      comment: null,
      self_approval: false,
      approvals,
      quorum: row.quorum ?? 1,
      status: "expired",
      approved_until: row.approved_until === null ? null : toRfc3339(row.approved_until),
      rejection_until: null,
    },
    row.submitted_by,
  );
}

function approvalExpiredError(row: ActionRow): Refusal {
  return new Refusal(
    "APPROVAL_EXPIRED",
    `the time to decide ended at ${toRfc3339(row.expires_at ?? 0)}; the agent has to submit the action again`,
  );
}

function assertPending(row: ActionRow): void {
  if (row.status === "expired" && row.approved_until === null) throw approvalExpiredError(row);
  if (row.status !== "pending_approval") {
    throw new Refusal(
      "ACTION_NOT_PENDING",
      `the action is ${row.status}; only a pending one can be decided or cancelled, and by an admin one that may start be cancelled`,
    );
  }
}

async function updateStatus(
  tx: LedgerTransaction,
  id: string,
  guard: Parameters<LedgerTransaction["updateAction"]>[1],
  status: "expired" | "cancelled",
): Promise<void> {
  const moved = await tx.updateAction(id, guard, { status, updated_at: tx.now });
  if (!moved) throw new Error(`${id} did not move to ${status} although the ledger's lock was held`);
}
