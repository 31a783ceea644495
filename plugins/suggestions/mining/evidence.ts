/**
 * The evidence of a suggestion: who voted on the requests that the rule would have decided, and which other requests
 * the rule would allow.
 */
import { toRfc3339 } from "../../../src/plugin.ts";
import { describeMismatch } from "./conditions.ts";
import type { MinedRule } from "./mine.ts";
import { isStrongApproval, measureSupport, type MinimumEvidence, type PastRequest } from "./past-request.ts";
import { upperRejectionBound } from "./rejection-bound.ts";

const CONFIDENCE = 0.95;
const MAX_NEAREST = 3;
const MAX_EXAMPLES = 5;
const MAX_PEOPLE = 20;

export interface Evidence {
  /** Number of approvals that the rule covers. Only some of them count as support. */
  approvals: number;
  counted: number;
  /**
   * Number of weak approvals, which do not count. An approval is weak if one of its votes took less than three seconds,
   * is on the approver's own action, or is a break-glass vote.
   */
  weak: number;
  /** Number of people who gave strong approvals. */
  people: number;
  approvers: string[];
  agents: number;
  days: number;
  first_at: string;
  last_at: string;
  /** Median time of the votes. Milliseconds. */
  median_vote_ms: number;
  /** Number of approved actions by their outcome. */
  outcomes: Record<PastRequest["outcome"], number>;
  /** The rejected requests that fail the fewest conditions. */
  nearest_rejections: { action_id: string; at: string; agent_id: string; failed: string[] }[];
  /** Number of rejections of the same tool and operation. */
  rejections: number;
  /** Exact one-sided upper bound of the rejection rate, given this number of strong approvals without a rejection. */
  rejection_bound: { trials: number; rejections: number; confidence: number; upper: number };
  /**
   * Requests in the time range that the rule would newly allow, beyond the approvals that it is based on. `unanswered`:
   * number of requests on which no person voted.
   */
  newly_allows: {
    unanswered: number;
    approved: number;
    examples: { action_id: string; at: string; agent_id: string }[];
  };
  /** Members, such as `params.amount`, whose condition is also true for values that no one approved. */
  open_members: string[];
  /**
   * Result of a backtest: the number of replayed decisions in the time range, and the number that change to `allow`.
   */
  backtest: { evaluated: number; flipped: number };
}

/** @param newlyAllowed the requests in the time range that the policies allow only because of the rule */
export function collectEvidence(
  rule: MinedRule,
  bar: MinimumEvidence,
  newlyAllowed: readonly PastRequest[],
  evaluated: number,
): Evidence {
  const allowed = new Set(newlyAllowed);
  const covered = rule.covered.filter((request) => allowed.has(request));
  const support = measureSupport(covered, bar);
  const inRule = new Set(covered);
  const others = newlyAllowed.filter((request) => !inRule.has(request));
  const times = covered.map(({ at }) => at);
  const outcomes: Evidence["outcomes"] = { succeeded: 0, failed: 0, unknown: 0, not_run: 0 };
  for (const { outcome } of covered) outcomes[outcome]++;
  return {
    approvals: covered.length,
    counted: support.counted,
    weak: covered.length - support.strong,
    people: support.people,
    approvers: [...new Set(covered.filter(isStrongApproval).flatMap(({ votes }) => votes.map(({ by }) => by)))]
      .sort()
      .slice(0, MAX_PEOPLE),
    agents: support.agents,
    days: support.days,
    first_at: toRfc3339(times.reduce((first, at) => Math.min(first, at), Infinity)),
    last_at: toRfc3339(times.reduce((last, at) => Math.max(last, at), 0)),
    median_vote_ms: median(covered.flatMap(({ votes }) => votes.map(({ took_ms }) => took_ms))),
    outcomes,
    nearest_rejections: findNearestRejections(rule),
    rejections: rule.group.rejected.length,
    rejection_bound: {
      trials: support.strong,
      rejections: 0,
      confidence: CONFIDENCE,
      upper: upperRejectionBound(0, support.strong, CONFIDENCE),
    },
    newly_allows: {
      unanswered: others.filter(({ verdict }) => verdict === "unanswered").length,
      approved: others.filter(({ verdict }) => verdict === "approved").length,
      examples: others.slice(0, MAX_EXAMPLES).map(exampleOf),
    },
    open_members: rule.conditions.flatMap(({ kind, member }) =>
      member !== null && ["prefix", "range", "pattern"].includes(kind) ? [member] : [],
    ),
    backtest: { evaluated, flipped: newlyAllowed.length },
  };
}

const exampleOf = ({ action_id, at, agent_id }: PastRequest) => ({ action_id, at: toRfc3339(at), agent_id });

/** Returns the rejections that fail the fewest conditions. If several fail the same number, the newest come first. */
export function findNearestRejections({ group, conditions, agents }: MinedRule): Evidence["nearest_rejections"] {
  return group.rejected
    .map((request) => ({
      request,
      failed: [
        ...(agents.includes(request.agent_id) ? [] : ["another agent"]),
        ...conditions
          .filter((condition) => !condition.holds(request))
          .map((condition) => describeMismatch(condition, request)),
      ],
    }))
    .sort((a, b) => a.failed.length - b.failed.length || b.request.at - a.request.at)
    .slice(0, MAX_NEAREST)
    .map(({ request, failed }) => ({ ...exampleOf(request), failed }));
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}
