/** What an action counts against limits: written with its decision, and found again from its entry. */
import type { ActionRequest } from "./actions.ts";
import { openEntry, type ApprovalEntry } from "./entries.ts";
import type { CompiledPolicySet } from "./policy/compile/compile.ts";
import { Evaluation } from "./policy/decide/evaluation.ts";
import { limitNeeds, type LimitNeed } from "./policy/decide/limit-facts.ts";
import type { Decision, Effect, Facts } from "./policy/types.ts";

/** How long uses are kept after they stop counting, so that a clock that is set back still finds them. Milliseconds. */
export const USES_KEPT = 86_400_000;

/** What a decision uses: nothing when it denies; and a policy in shadow mode counts what it would have let through, as it will when it is enforced. */
export function usedBy(decision: Decision, needs: readonly LimitNeed[]): readonly LimitNeed[] {
  if (decision.effect === "deny" || needs.length === 0) return [];
  const denying = new Set(decision.shadow.filter(({ effect }) => effect === "deny").map(({ policy }) => policy));
  return denying.size === 0 ? needs : needs.filter(({ policy }) => !denying.has(policy));
}

/** The same for an action that was decided at `at`. @param counts of its history */
export function usesOf(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  recorded: { facts: Facts; decision: Decision },
  at: number,
  { counts }: { counts: boolean },
): readonly LimitNeed[] {
  if (!counts) return [];
  return usedBy(recorded.decision, limitNeeds(new Evaluation(compiled, request, recorded.facts, at)));
}

/**
 * Whether an action that is pending may have run: it was allowed or approved before it went back to people. Whoever has a
 * permit can use it where nobody starts the action here. What cannot be read may have been an approval.
 * @param entries those of the action; null where they are damaged
 */
export function mayHaveRun(
  { decision }: { decision: Effect },
  entries: readonly { type: string; bytes: Uint8Array }[] | null,
): boolean {
  if (decision !== "require_approval") return decision === "allow";
  return entries === null || entries.some(({ type, bytes }) => type === "approval" && mayHaveApproved(bytes));
}

function mayHaveApproved(bytes: Uint8Array): boolean {
  try {
    return openEntry<ApprovalEntry>(bytes).status === "approved";
  } catch {
    return true;
  }
}
