/**
 * Decides an open action again, at every vote for it, at its start and when a permit is made: the policies, the agent
 * and the key may have changed since it was first decided.
 */
import { type DecisionEntry, type LedgerTransaction, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionChange, ActionRow } from "../../src/storage/index.ts";
import {
  actionEntryFields,
  type ActionRequest,
  decideEvaluation,
  type Decision,
  Evaluation,
  type Facts,
  type LimitFact,
  findMatchedLimits,
  restoreFacts,
  type RecordedFacts,
  type RedecisionEntry,
  commitFacts,
  findUsedBefore,
} from "../../src/core.ts";
import { readUse, releaseUses } from "./limits.ts";
import { rereadAction } from "./rows.ts";
import { newSalt } from "./salt.ts";

export interface Redecision {
  decision: Decision;
  policySet: string | null;
  facts: RecordedFacts;
  /** What opens the facts of the action's entries, these included. */
  past: string | null;
}

/** Who caused it, and how. */
export type RedecisionCause = Pick<RedecisionEntry, "occasion" | "by">;

/** What it means for the action: nothing runs, more people have to approve, or it stands. */
export type RedecisionOutcome = "denied" | "pending_approval" | "stands";

/**
 * What the policies, the agent and the key of this moment say. Records nothing. Throws STOPPED while a stop holds that is about it. An action keeps its place among those
 * that a limit counts: what was used before it stays what was used before it, and it is not counted again.
 * @param first the action's own decision, from its entry
 */
export async function reevaluateAction(
  tx: LedgerTransaction,
  row: ActionRow,
  first: Pick<DecisionEntry, "facts">,
): Promise<Redecision> {
  const { compiled, source, digest } = tx.activePolicies;
  const request = JSON.parse(row.request) as ActionRequest;
  const commit = source?.["commit"];
  const now: Facts = {
    principal: first.facts.principal,
    ...(await tx.agentFacts(row.agent_id)),
    ...(await keyFacts(tx, row.submitted_by)),
    ...(commit === undefined ? {} : { policy_commit: commit }),
  };
  const evaluation = new Evaluation(compiled, request, now, tx.now);
  const counted = restoreFacts(first.facts, row.past);
  const limits: LimitFact[] = [];
  for (const need of findMatchedLimits(evaluation)) {
    const { policy, limit, basis } = need;
    limits.push({ policy, limit, basis, used: findUsedBefore(counted, need) ?? (await readUse(tx, need)) });
  }
  const facts = { ...now, limits };
  const decision = decideEvaluation(evaluation, { ...facts, ...tx.stopFacts(row) });
  if (decision.reason_code === "STOPPED") throw stoppedError(row, decision);
  return { decision, policySet: digest, ...commitFacts(facts, newSalt, row.past) };
}

/** The stop decides nothing: when it is lifted, the action is where it was, unless its time is over. */
function stoppedError({ status }: ActionRow, { reason }: Decision): Refusal {
  return new Refusal("STOPPED", `${reason}; the action stays ${status}, and its time runs on`);
}

async function keyFacts(tx: LedgerTransaction, id: string): Promise<Pick<Facts, "key_ended">> {
  const key = await tx.key(id);
  const live = key !== null && key.revoked_at === null && (key.expires_at === null || key.expires_at > tx.now);
  return live ? {} : { key_ended: true };
}

/** @param approvals different people who have approved */
export function resolveOutcome({ decision }: Redecision, approvals: number): RedecisionOutcome {
  if (decision.effect === "deny") return "denied";
  return decision.approval !== null && approvals < decision.approval.quorum ? "pending_approval" : "stands";
}

/** Denies, in this job, an action that is allowed no longer. The caller commits that before it says so. */
export async function recordDenial(
  tx: LedgerTransaction,
  row: ActionRow,
  again: Redecision,
  cause: RedecisionCause,
): Promise<ActionRow> {
  const { reason } = again.decision;
  await recordRedecision(tx, row, again, cause, { status: "denied", reason, reason_code: "NO_LONGER_ALLOWED" });
  await releaseUses(tx, row);
  return rereadAction(tx, row.id);
}

/**
 * Asks for more approvals than there are, in this job. Votes stay. What may start already waits once more, as long as
 * the policies of now give; what waits keeps its time. The caller commits that before it says so.
 */
export async function requireMoreApprovals(
  tx: LedgerTransaction,
  row: ActionRow,
  again: Redecision,
  cause: RedecisionCause,
): Promise<ActionRow> {
  const { reason, approval } = again.decision;
  if (approval === null) throw new Error(`nobody is asked about ${row.id}`);
  const waits = row.status === "pending_approval";
  await recordRedecision(tx, row, again, cause, {
    status: "pending_approval",
    reason,
    reason_code: "MORE_APPROVALS_NEEDED",
    quorum: Math.max(approval.quorum, row.quorum ?? 1),
    expires_at: waits ? row.expires_at : tx.now + approval.expires_in_ms,
    approved_until: null,
  });
  return rereadAction(tx, row.id);
}

/** Records that the action stands. Answers the entry's hash. */
export function recordConfirmation(
  tx: LedgerTransaction,
  row: ActionRow,
  again: Redecision,
  cause: RedecisionCause,
): Promise<string> {
  return recordRedecision(tx, row, again, cause, { status: row.status });
}

async function recordRedecision(
  tx: LedgerTransaction,
  row: ActionRow,
  { decision, policySet, facts, past }: Redecision,
  { occasion, by }: RedecisionCause,
  change: Omit<ActionChange, "updated_at">,
): Promise<string> {
  const { quorum, expires_at: ends } = { ...row, ...change };
  const { hash } = tx.record(
    {
      type: "redecision",
      v: 3,
      ...actionEntryFields(row, tx.now),
      occasion,
      by,
      policy_set: policySet,
      facts,
      decision,
      status: change.status as RedecisionEntry["status"],
      quorum,
      expires_at: ends === null ? null : toRfc3339(ends),
    },
    row.submitted_by,
  );
  const guard =
    row.status === "pending_approval"
      ? { status: row.status, expires_after: tx.now }
      : { status: row.status, approved_after: tx.now };
  const moved = await tx.updateAction(row.id, guard, { ...change, past, updated_at: tx.now });
  if (!moved) throw new Error(`${row.id} was not decided again although the ledger's lock was held`);
  return hash;
}

/** Thrown after the commit: a refusal inside the job would take the record back. */
export function noLongerAllowedError(row: ActionRow): Refusal {
  return new Refusal(
    "NO_LONGER_ALLOWED",
    `it was decided again with the policies, the agent and the key of now, and is denied: ${row.reason}`,
  );
}

/** Thrown after the commit, too. */
export function moreApprovalsNeededError(row: ActionRow): Refusal {
  return new Refusal(
    "MORE_APPROVALS_NEEDED",
    `it was decided again with the policies of now, and waits for approval once more, of ${row.quorum ?? 1} in all: ${row.reason}; wait for the verdict and start then`,
  );
}

export function isDeniedByRedecision(row: ActionRow): boolean {
  return row.status === "denied" && row.reason_code === "NO_LONGER_ALLOWED";
}
