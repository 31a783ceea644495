/** What was used of limits, read and written in the decision's own transaction: exact whoever else submits meanwhile. */
import type { LedgerTransaction } from "../../src/contract/host.ts";
import type { StorageReader } from "../../src/contract/storage.ts";
import type { ActionRequest } from "../../src/domain/actions.ts";
import type { Compiled } from "../../src/domain/policy/compile.ts";
import { limitNeeds, type LimitNeed } from "../../src/domain/policy/limits.ts";
import type { Decision, Facts, LimitFact } from "../../src/domain/policy/types.ts";

/** A clock that is set back must find what it needs. Milliseconds. */
const GRACE = 86_400_000;
/** Removed with each use that is written: more than come in. */
const SWEEP = 4;

export interface KnownUses {
  facts: Facts;
  needs: readonly LimitNeed[];
}

export async function readUses(reader: Pick<StorageReader, "limitUsed">, compiled: Compiled, request: ActionRequest, facts: Facts, now: number): Promise<KnownUses> {
  const needs = limitNeeds(compiled, request, facts, now);
  if (needs.length === 0) return { facts, needs };
  const limits: LimitFact[] = [];
  for (const { policy, limit, basis, subject, since, unit } of needs) {
    const used = await reader.limitUsed(policy, limit, subject, since);
    limits.push({ policy, limit, basis, used: unit === "count" ? used.count : used.sum });
  }
  return { facts: { ...facts, limits }, needs };
}

/** What a decision uses: nothing when it denies; and a policy in shadow mode counts what it would have let through, as it will when it is enforced. */
export function usedBy(decision: Decision, needs: readonly LimitNeed[]): readonly LimitNeed[] {
  if (decision.effect === "deny" || needs.length === 0) return [];
  const denying = new Set(decision.shadow.filter(({ effect }) => effect === "deny").map(({ policy }) => policy));
  return denying.size === 0 ? needs : needs.filter(({ policy }) => !denying.has(policy));
}

export async function writeUses(tx: LedgerTransaction, needs: readonly LimitNeed[], actionId: string): Promise<void> {
  for (const { policy, limit, subject, amount, until } of needs) await tx.insertLimitUse({ policy, limit_name: limit, subject, action_id: actionId, at: tx.now, amount, until });
  if (needs.length > 0) await tx.pruneLimitUses(tx.now - GRACE, SWEEP * needs.length);
}
