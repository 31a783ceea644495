/** Computes the limits that an action counts against, both for its decision and later from its entry. */
import type { ActionRequest } from "./actions.ts";
import { decodeEntry, type ApprovalEntry } from "./entries.ts";
import type { CompiledPolicySet } from "./policy/compile/compile.ts";
import { Evaluation } from "./policy/decide/evaluation.ts";
import { listAuthorityUses } from "./policy/decide/authority.ts";
import { computeGrantUse } from "./policy/decide/grant.ts";
import { amountToMicros, findMatchedLimits, type MatchedLimit } from "./policy/decide/limit-facts.ts";
import { endOfWindow } from "./policy/decide/window.ts";
import type { Decision, Effect, Facts } from "./policy/policy-types.ts";

/** Retention period of expired uses, in case the clock is set back. Milliseconds. */
export const USE_RETENTION_MS = 86_400_000;

/**
 * Returns the limits that a decision counts against. A denied action does not count. Limits of a shadow policy count
 * only if that policy would not have denied the action, as if it were enforced.
 */
export function selectCountedLimits(decision: Decision, needs: readonly MatchedLimit[]): readonly MatchedLimit[] {
  if (decision.effect === "deny" || needs.length === 0) return [];
  const denying = new Set(decision.shadow.filter(({ effect }) => effect === "deny").map(({ policy }) => policy));
  return denying.size === 0 ? needs : needs.filter(({ policy }) => !denying.has(policy));
}

/**
 * Returns the limits that a recorded decision counted against.
 * @param recorded the decision's entry, with its facts restored
 * @param at the time of the decision in milliseconds
 */
export function recomputeLimitUses(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  recorded: { facts: Facts; decision: Decision },
  at: number,
  { countsAgainstLimits, usage }: { countsAgainstLimits: boolean; usage: ReportedUsage | null },
): readonly LimitUse[] {
  if (!countsAgainstLimits) return [];
  const evaluation = new Evaluation(compiled, request, recorded.facts, at);
  return listUses(evaluation, recorded, findMatchedLimits(evaluation)).flatMap((use) =>
    applyUsage({ ...use, at }, usage),
  );
}

/** Amounts that a result reports, by name. */
export type ReportedAmounts = Readonly<Record<string, number>>;

/** The amounts that a result reported, and the time of its entry in milliseconds. */
export interface ReportedUsage {
  amounts: ReportedAmounts;
  at: number;
}

/** A use of a limit, with the time at which it counts: that of the decision, or of the report of its amount. */
export interface LimitUse extends MatchedLimit {
  at: number;
}

/**
 * Returns the name under which reported amounts are counted, apart from reserved amounts. It cannot be the name of a
 * policy.
 */
export const reportedUsePolicy = (policy: string): string => `reported:${policy}`;

/**
 * Replaces the reserved amount with the reported amount. The reported amount counts from the time of the report,
 * because otherwise a late report would count in no current window. Retains the reserved amount if none was reported.
 */
function applyUsage(use: LimitUse, reported: ReportedUsage | null): LimitUse[] {
  if (use.usage === undefined || reported === null || !Object.hasOwn(reported.amounts, use.usage.name)) return [use];
  const { amounts, at } = reported;
  const { window } = use.usage;
  const amount = amountToMicros(amounts[use.usage.name]) ?? use.amount;
  const counted = { ...use, amount, at, until: window === null ? use.until : endOfWindow(window, at) };
  return [counted, { ...counted, policy: reportedUsePolicy(use.policy) }];
}

/**
 * Returns the uses that a decision counts: of limits, of the grant that allowed the action, and of its authority and
 * the delegators' limits. A limit that applies to several of these with the same subject counts once.
 * @param needs the limits that apply
 */
export function listUses(
  evaluation: Evaluation,
  { decision, facts: { grant } }: { decision: Decision; facts: Facts },
  needs: readonly MatchedLimit[],
): readonly MatchedLimit[] {
  const limits = selectCountedLimits(decision, needs);
  const use = grant === undefined ? null : computeGrantUse(grant, evaluation);
  const uses = use === null ? limits : [...limits, use];
  const delegated = decision.effect === "deny" ? [] : selectCountedLimits(decision, listAuthorityUses(evaluation));
  if (delegated.length === 0) return uses;
  const keyOf = ({ policy, limit, subject }: MatchedLimit): string => JSON.stringify([policy, limit, subject]);
  return [...new Map([...delegated, ...uses].map((each) => [keyOf(each), each])).values()];
}

/**
 * Returns true if a pending action might have run already, because it was allowed or approved before it required
 * approval again. Permits can be used outside the service, so it might have run without a report. Unreadable entries
 * count as approvals.
 * @param entries the entries of the action; null if they are corrupt
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
