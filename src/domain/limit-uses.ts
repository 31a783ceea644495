/** What an action counts against limits: written with its decision, and found again from its entry. */
import type { ActionRequest } from "./actions.ts";
import { decodeEntry, type ApprovalEntry } from "./entries.ts";
import type { CompiledPolicySet } from "./policy/compile/compile.ts";
import { Evaluation } from "./policy/decide/evaluation.ts";
import { findMatchedLimits, type MatchedLimit } from "./policy/decide/limit-facts.ts";
import type { Decision, Effect, Facts } from "./policy/types.ts";

/** How long uses are kept after they stop counting, so that a clock that is set back still finds them. Milliseconds. */
export const USE_RETENTION_MS = 86_400_000;

/** What a decision uses: nothing when it denies; and a policy in shadow mode counts what it would have let through, as it will when it is enforced. */
export function selectCountedLimits(decision: Decision, needs: readonly MatchedLimit[]): readonly MatchedLimit[] {
  if (decision.effect === "deny" || needs.length === 0) return [];
  const denying = new Set(decision.shadow.filter(({ effect }) => effect === "deny").map(({ policy }) => policy));
  return denying.size === 0 ? needs : needs.filter(({ policy }) => !denying.has(policy));
}

/** The same for an action that was decided at `at`. @param counts of its history */
export function recomputeLimitUses(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  recorded: { facts: Facts; decision: Decision },
  at: number,
  { countsAgainstLimits }: { countsAgainstLimits: boolean },
): readonly MatchedLimit[] {
  if (!countsAgainstLimits) return [];
  return selectCountedLimits(
    recorded.decision,
    findMatchedLimits(new Evaluation(compiled, request, recorded.facts, at)),
  );
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
  return entries === null || entries.some(({ type, bytes }) => type === "approval" && isApproval(bytes));
}

function isApproval(bytes: Uint8Array): boolean {
  try {
    return decodeEntry<ApprovalEntry>(bytes).status === "approved";
  } catch {
    return true;
  }
}
