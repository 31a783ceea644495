/** Counts uses of limits in the transaction of the decision, so that counts are exact under concurrent submissions. */
import {
  type CountedDecision,
  type Evaluation,
  type Facts,
  findMatchedLimits,
  findRecordedUsage,
  type LedgerTransaction,
  type LimitFact,
  type MatchedLimit,
  mayHaveRun,
  reportedUsePolicy,
  USE_RETENTION_MS,
} from "../../src/core.ts";
import { type ActionRow, type LimitSpan, type StorageReader, nullIfCorrupt } from "../../src/storage/index.ts";

/** Maximum number of outdated uses that are removed at a time, because the ledger's lock is held meanwhile. */
const PRUNE_LIMIT = 1024;

interface LimitUses {
  facts: Facts;
  needs: readonly MatchedLimit[];
}

/**
 * Reads the usage of the limits that apply. An action that was counted uses the recorded usage, because the current usage
 * includes the action itself.
 */
export async function readLimitUses(
  reader: Pick<StorageReader, "limitUsed">,
  evaluation: Evaluation,
  facts: Facts,
  counted: CountedDecision | null,
): Promise<LimitUses> {
  const needs = findMatchedLimits(evaluation);
  if (needs.length === 0) return { facts, needs };
  const limits: LimitFact[] = [];
  for (const need of needs) {
    const { policy, limit, basis } = need;
    const recorded = counted === null ? null : findRecordedUsage(counted.facts, need);
    const used =
      recorded === null ? await readLimitUse(reader, need) : await raiseToReports(reader, need, recorded, counted);
    limits.push({ policy, limit, basis, used });
  }
  return { facts: { ...facts, limits }, needs };
}

/**
 * Returns the recorded usage that counts for an open action. For a budget, returns the sum of the reports if it is
 * larger and the action has not started, because others may have used more than they reserved. Ignores other reserves,
 * because their decisions already counted this action.
 */
export async function raiseToReports(
  reader: Pick<StorageReader, "limitUsed">,
  { policy, limit, subject, since, usage }: Pick<MatchedLimit, "policy" | "limit" | "subject" | "since" | "usage">,
  recorded: number,
  counted: CountedDecision | null,
): Promise<number> {
  if (usage === undefined || counted === null || counted.hasStarted) return recorded;
  const reported = await reader.limitUsed(reportedUsePolicy(policy), limit, subject, since);
  return Math.max(recorded, reported.sum);
}

async function readLimitUse(
  reader: Pick<StorageReader, "limitUsed">,
  { policy, limit, subject, since, unit }: MatchedLimit,
): Promise<number> {
  const used = await reader.limitUsed(policy, limit, subject, since);
  return unit === "count" ? used.count : used.sum;
}

export const limitSpan = ({ policy, limit, subject, since }: MatchedLimit): LimitSpan => ({
  policy,
  limit_name: limit,
  subject,
  since,
});

/** Transaction objects that have already removed outdated uses. The jobs of a batch usually share one object. */
const pruned = new WeakSet<LedgerTransaction>();

/**
 * Removes outdated uses, once for the jobs of a batch. Call it before the first insert of a job, so that all inserts of
 * the batch are sent together.
 */
export async function pruneLimitUses(tx: LedgerTransaction): Promise<void> {
  if (pruned.has(tx)) return;
  pruned.add(tx);
  await tx.pruneLimitUses(tx.now - USE_RETENTION_MS, PRUNE_LIMIT);
}

export async function writeLimitUses(
  tx: LedgerTransaction,
  needs: readonly MatchedLimit[],
  actionId: string,
): Promise<void> {
  for (const { policy, limit, subject, amount, until } of needs)
    await tx.insertLimitUse({ policy, limit_name: limit, subject, action_id: actionId, at: tx.now, amount, until });
}

/**
 * Releases the limit uses of an action that ended while it was pending. Retains them if the action may have run before
 * it returned to pending.
 *
 * @param row the row before the action ended
 */
export async function releaseLimitUses(tx: LedgerTransaction, row: ActionRow): Promise<void> {
  if (row.status !== "pending_approval" || (await mayHaveStarted(tx, row))) return;
  await tx.releaseLimitUses(row.id);
}

async function mayHaveStarted(tx: LedgerTransaction, row: ActionRow): Promise<boolean> {
  return (
    row.reason_code === "MORE_APPROVALS_NEEDED" && mayHaveRun(row, await nullIfCorrupt(tx.entriesOfAction(row.id)))
  );
}
