/** Records the result of a started action once. Only the key that started the action may report it. */
import {
  type ActionOutcome,
  actionEntryFields,
  canonicalText,
  canSee,
  commitResult,
  type CompiledPolicySet,
  type CoreHost,
  effectiveRequest,
  type JsonObject,
  type LedgerTransaction,
  parseEntryTime,
  type Prefetch,
  PreparationRequired,
  recomputeLimitUses,
  type ReportedAmounts,
  restoreFacts,
  toActor,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { verifyAgainstLedger, type VerifiedHistory } from "./verify-record.ts";
import { assertNotErased, actionNotFoundError } from "./visible-action.ts";

/** A request to record a result. */
interface ResultCall {
  id: string;
  /** SHA-256 of the `attempt` of the start, hex. */
  attempt: string | null;
  result: { error: string | null; meta: JsonObject; success: boolean };
  /** Amounts that the action used; null if none were reported. */
  usage: ReportedAmounts | null;
  /** Policy sets that were read for this call, by digest. */
  policySets: Map<string, CompiledPolicySet | null>;
}

export interface ReportedResult {
  row: ActionRow;
  /** Whether this result had already been reported. */
  isRetry: boolean;
}

/**
 * Records the result. A client that lost the response can report the same result again with the `attempt` of its start,
 * and gets the same response.
 * @param caller the credential as returned by `tx.confirm`
 */
export async function recordResult(
  host: CoreHost,
  tx: LedgerTransaction,
  caller: Credential,
  { id, attempt, result, usage, policySets }: ResultCall,
): Promise<ReportedResult> {
  const row = await tx.action(id);
  const isStarter = row !== null && row.started_by === caller.key.id;
  // All agents of a user have the user's id, so also check that an agent of a user can see the action.
  const isOtherAgent = caller.workload?.user_id != null;
  if (row === null || !(canSee(caller.visibility, row) || (isStarter && !isOtherAgent))) throw actionNotFoundError(id);
  assertNotErased(row);
  const history = await verifyAgainstLedger(host, tx, row);
  const { start, result: reported, first, newest } = history;
  const matchesStart = isStarter && attempt !== null && start?.attempt === attempt;
  const commitment = commitResult(row.salt, result);
  // Compare with the commitment in the ledger, because the result in the row could have been altered.
  const isSame = reported === commitment && canonicalText(history.usage?.amounts ?? {}) === canonicalText(usage ?? {});
  if (matchesStart && isSame) return { row: { ...row, result: canonicalText(result) }, isRetry: true };
  if (row.status !== "executing" && row.status !== "unknown") {
    const advice = reported === null ? "only a started action can have a result" : "its result was already reported";
    throw new Refusal("ACTION_NOT_STARTED", `the action is ${row.status}; ${advice}`);
  }
  if (!isStarter)
    throw new Refusal("NOT_THE_EXECUTOR", "another key started this action; only that key reports its result");
  if (attempt !== null && !matchesStart)
    throw new Refusal(
      "NOT_THE_EXECUTOR",
      "another attempt started this action; only that attempt can report its result",
    );
  // Read the policies before the entry is recorded, because the read can require the transaction to start again.
  const policies = usage === null ? null : findDecisionPolicies(host, tx, history, policySets);
  const entry = {
    type: "execution",
    v: 1,
    ...actionEntryFields(row, tx.now),
    phase: "result",
    by: toActor(caller.key, caller.principal),
    permit: null,
    attempt: null,
    success: result.success,
    result: commitment,
    comment: null,
    ...(usage === null ? {} : { usage: { ...usage } }),
    status: result.success ? "succeeded" : "failed",
  } as const;
  const { row: ended } = tx.recordChange(row, null, entry, { result: canonicalText(result) });
  if (usage !== null) await countUsage(host, tx, row, { ...history, usage: { amounts: usage, at: tx.now } }, policies);
  await reactToResult(host, tx, row, {
    success: result.success,
    by: toActor(caller.key, caller.principal),
    facts: [first.facts, newest.facts],
  });
  return { row: ended, isRetry: false };
}

/** Returns the policies of the decision; null if they are not stored. Throws PreparationRequired to read them. */
function findDecisionPolicies(
  host: CoreHost,
  { activePolicies }: LedgerTransaction,
  { basis: { policy_set: digest } }: VerifiedHistory,
  policySets: ResultCall["policySets"],
): CompiledPolicySet | null {
  const cached = digest === activePolicies.digest ? activePolicies.compiled : policySets.get(digest ?? "");
  if (cached === undefined && digest !== null)
    throw new PreparationRequired("the policies of a result", async () => {
      policySets.set(digest, (await host.policies.byDigest(digest))?.compiled ?? null);
    });
  return cached ?? null;
}

/** Replaces the reserved amounts in the action's uses of limits by the reported ones. */
async function countUsage(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  { basis, countsAgainstLimits, usage }: VerifiedHistory,
  policies: CompiledPolicySet | null,
): Promise<void> {
  const request = effectiveRequest(row);
  if (policies === null || request === null) {
    host.log.error("the usage of a result does not count, because the policies of its decision cannot be read", {
      action: row.id,
      policy_set: basis.policy_set,
    });
    return;
  }
  const recorded = { decision: basis.decision, facts: restoreFacts(basis.facts, row.past) };
  const uses = recomputeLimitUses(policies, request, recorded, parseEntryTime(basis.at), {
    countsAgainstLimits,
    usage,
  });
  if (!uses.some((use) => use.usage !== undefined)) return;
  await tx.releaseLimitUses(row.id);
  for (const { policy, limit, subject, at, amount, until } of uses)
    await tx.insertLimitUse({ policy, limit_name: limit, subject, action_id: row.id, at, amount, until });
}

export const prefetchResult =
  ({ id }: ResultCall): Prefetch =>
  () => ({ history: id });

/** Lets features react to a result that was recorded. */
export async function reactToResult(
  { reactions }: Pick<CoreHost, "reactions">,
  tx: LedgerTransaction,
  row: ActionRow,
  result: ActionOutcome,
): Promise<void> {
  for (const reaction of reactions) await reaction.resultReported?.(tx, row, result);
  if (!result.success) for (const reaction of reactions) reaction.actionFailed?.(tx, row, result.by);
}
