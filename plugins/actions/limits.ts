/** What was used of limits, read and written in the decision's own transaction: exact whoever else submits meanwhile. */
import type { LedgerTransaction } from "../../src/plugin.ts";
import { type ActionRow, type LimitSpan, type StorageReader, nullIfCorrupt } from "../../src/storage/index.ts";
import {
  type Evaluation,
  type Facts,
  type LimitFact,
  type MatchedLimit,
  findMatchedLimits,
  mayHaveRun,
  USE_RETENTION_MS,
} from "../../src/core.ts";

/** Removed with each batch that writes uses: more than come in. */
const SWEEP = 1024;

export interface LimitUses {
  facts: Facts;
  needs: readonly MatchedLimit[];
}

export async function readUses(
  reader: Pick<StorageReader, "limitUsed">,
  evaluation: Evaluation,
  facts: Facts,
): Promise<LimitUses> {
  const needs = findMatchedLimits(evaluation);
  if (needs.length === 0) return { facts, needs };
  const limits: LimitFact[] = [];
  for (const need of needs) {
    const { policy, limit, basis } = need;
    limits.push({ policy, limit, basis, used: await readUse(reader, need) });
  }
  return { facts: { ...facts, limits }, needs };
}

export async function readUse(
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

/** Batches that have removed what is over. */
const swept = new WeakSet<LedgerTransaction>();

export async function writeUses(
  tx: LedgerTransaction,
  needs: readonly MatchedLimit[],
  actionId: string,
): Promise<void> {
  if (needs.length === 0) return;
  // Before the first row of the batch: those behind it then go in together.
  if (!swept.has(tx)) {
    swept.add(tx);
    await tx.pruneLimitUses(tx.now - USE_RETENTION_MS, SWEEP);
  }
  for (const { policy, limit, subject, amount, until } of needs)
    await tx.insertLimitUse({ policy, limit_name: limit, subject, action_id: actionId, at: tx.now, amount, until });
}

/**
 * Takes back what an action counted that ends without having been started. What may have run goes on to count.
 * @param row as it was before its end
 */
export async function releaseUses(tx: LedgerTransaction, row: ActionRow): Promise<void> {
  if (row.status !== "pending_approval" || (await mayHaveStarted(tx, row))) return;
  await tx.releaseLimitUses(row.id);
}

async function mayHaveStarted(tx: LedgerTransaction, row: ActionRow): Promise<boolean> {
  return (
    row.reason_code === "MORE_APPROVALS_NEEDED" && mayHaveRun(row, await nullIfCorrupt(tx.entriesOfAction(row.id)))
  );
}
