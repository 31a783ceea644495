/** Reads the histories that conditions need and adds actions to histories, within the transaction of the decision. */
import {
  type Effect,
  Evaluation,
  findHistoryMemberships,
  findHistoryReads,
  type HistoryFact,
  type LedgerTransaction,
  toHistoryFact,
  USE_RETENTION_MS,
} from "../../src/core.ts";
import type { HistorySpan, StorageReader } from "../../src/storage/index.ts";

/** Maximum number of outdated rows that are removed at a time, because the ledger's lock is held meanwhile. */
const PRUNE_LIMIT = 1024;

/**
 * Returns the histories that the conditions read.
 * @param actionId id of the action that is being decided
 */
export async function readHistories(
  reader: Pick<StorageReader, "pastActions">,
  evaluation: Evaluation,
  actionId: string,
): Promise<HistoryFact[]> {
  const history: HistoryFact[] = [];
  for (const read of findHistoryReads(evaluation)) {
    const rows = read.span === null ? [] : await reader.pastActions(read.span);
    history.push(toHistoryFact(read, rows, evaluation, actionId));
  }
  return history;
}

/** Returns the spans of history that `readHistories` will read. */
export function listHistorySpans(evaluation: Evaluation): HistorySpan[] {
  return findHistoryReads(evaluation).flatMap(({ span }) => span ?? []);
}

/** Transaction objects that have already removed outdated rows. The jobs of a batch usually share one object. */
const pruned = new WeakSet<LedgerTransaction>();

/** Adds an action to the histories that it belongs to. */
export async function writePastAction(
  tx: LedgerTransaction,
  evaluation: Evaluation,
  effect: Effect,
  actionId: string,
): Promise<void> {
  const places = findHistoryMemberships(evaluation, effect);
  if (places.length === 0) return;
  // Prune before the first insert of the batch, so that all inserts of the batch are sent together.
  if (!pruned.has(tx)) {
    pruned.add(tx);
    await tx.prunePastActions(tx.now - USE_RETENTION_MS, PRUNE_LIMIT);
  }
  for (const { policy, basis, subject, until } of places)
    await tx.insertPastAction({ policy, basis, subject, action_id: actionId, at: tx.now, until });
}
