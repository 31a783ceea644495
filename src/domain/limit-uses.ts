/** What an action counts against limits: written with its decision, and found again from its entry. */
import type { ActionRequest, ActionStatus } from "./actions.ts";
import type { CompiledPolicySet } from "./policy/compile.ts";
import { Evaluation } from "./policy/evaluation.ts";
import { limitNeeds, type LimitNeed } from "./policy/limits.ts";
import type { Decision, Facts } from "./policy/types.ts";

/** How long uses are kept after they stop counting, so that a clock that is set back still finds them. Milliseconds. */
export const USES_KEPT = 86_400_000;

/** What does not happen does not count. */
const RELEASED: readonly ActionStatus[] = ["denied", "expired", "cancelled"];

/** What a decision uses: nothing when it denies; and a policy in shadow mode counts what it would have let through, as it will when it is enforced. */
export function usedBy(decision: Decision, needs: readonly LimitNeed[]): readonly LimitNeed[] {
  if (decision.effect === "deny" || needs.length === 0) return [];
  const denying = new Set(decision.shadow.filter(({ effect }) => effect === "deny").map(({ policy }) => policy));
  return denying.size === 0 ? needs : needs.filter(({ policy }) => !denying.has(policy));
}

/**
 * The same for an action that was decided at `at` and has come to `status`. One that may have run counts: whoever has a
 * permit can use it where nobody starts the action here.
 */
export function usesOf(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  recorded: { facts: Facts; decision: Decision },
  at: number,
  { status, approved_until }: { status: ActionStatus; approved_until?: number | null | undefined },
): readonly LimitNeed[] {
  const mayHaveRun = status === "expired" && approved_until !== null;
  if (RELEASED.includes(status) && !mayHaveRun) return [];
  return usedBy(recorded.decision, limitNeeds(new Evaluation(compiled, request, recorded.facts, at)));
}
