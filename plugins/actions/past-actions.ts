/** Reads the histories that conditions need and adds actions to histories, within the transaction of the decision. */
import {
  type Evaluation,
  type Facts,
  type EffectFact,
  findEffects,
  findHistoryReads,
  findMemberships,
  type HistoryFact,
  type LedgerTransaction,
  toEffectFact,
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

/**
 * Returns the effects of the deciding rules, with the actions that block them. Omits an effect if its blocking action
 * cannot be determined; the policies then deny the action.
 * @param evaluation an evaluation with all other facts
 * @param actionId id of the action that is being decided
 */
export async function readEffects(
  reader: Pick<StorageReader, "action" | "pastActions">,
  evaluation: Evaluation,
  { principal }: Pick<Facts, "principal">,
  actionId: string,
): Promise<EffectFact[]> {
  const effects: EffectFact[] = [];
  for (const effect of findEffects(evaluation)) {
    const rows = typeof effect.span === "string" ? [] : await reader.pastActions(effect.span);
    const fact = toEffectFact(effect, rows, evaluation.now, actionId);
    if (fact === undefined) continue;
    const { blocked_by: by } = fact;
    if (by !== null) {
      const blocking = await reader.action(by.action_id);
      // The agents of one user share the user's id.
      by.own = blocking?.submitted_by === principal.key_id && blocking.submitted_agent === principal.agent_id;
    }
    effects.push(fact);
  }
  return effects;
}

/** Returns the spans of history that `readHistories` will read. */
export function listHistorySpans(evaluation: Evaluation): HistorySpan[] {
  return findHistoryReads(evaluation).flatMap(({ span }) => span ?? []);
}

/** Transaction objects that have already removed outdated rows. The jobs of a batch usually share one object. */
const pruned = new WeakSet<LedgerTransaction>();

/** Removes outdated rows. Like `pruneLimitUses`, call it before the first insert of a job. */
export async function prunePastActions(tx: LedgerTransaction): Promise<void> {
  if (pruned.has(tx)) return;
  pruned.add(tx);
  await tx.prunePastActions(tx.now - USE_RETENTION_MS, PRUNE_LIMIT);
}

/** Adds an action to the histories that it belongs to. */
export async function writePastActions(
  tx: LedgerTransaction,
  memberships: ReturnType<typeof findMemberships>,
  actionId: string,
): Promise<void> {
  for (const { policy, basis, subject, until } of memberships)
    await tx.insertPastAction({ policy, basis, subject, action_id: actionId, at: tx.now, until });
}
