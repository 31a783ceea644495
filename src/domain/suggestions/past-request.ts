/** Requests of the past as suggestions read them: what was asked, how people voted, and how it ended. */
import type { JsonObject } from "../json.ts";

/** One vote on a request. */
export interface PastVote {
  /** Principal of the approver. */
  by: string;
  /** Time since the request, or since the approver's vote before, whichever is shorter. Milliseconds. */
  took_ms: number;
  /** Whether the approver confirmed their own action, or approved alone in an emergency. */
  exceptional: boolean;
}

export interface PastRequest {
  action_id: string;
  agent_id: string;
  /**
   * Whose volume the request counts as: the agent that the key is bound to, or the key. A key that can name any agent counts
   * once.
   */
  source: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context: JsonObject;
  /** Milliseconds. */
  at: number;
  /**
   * `approved`: people approved it as it was submitted. `rejected`: a person or a machine reviewer rejected it, an approver
   * changed it, or somebody flagged it. `unanswered`: anything else.
   */
  verdict: "approved" | "rejected" | "unanswered";
  /** The approving votes. */
  votes: readonly PastVote[];
  /** How an approved action ended. */
  outcome: "succeeded" | "failed" | "unknown" | "not_run";
  /** The rule that requires approval now; null if another answer is given, or more than one rule requires it. */
  asked: { policy: string; rule: string } | null;
}

/** What must support a suggestion. */
export interface EvidenceBar {
  /** Approvals that count. */
  min_approvals: number;
  min_people: number;
  min_days: number;
}

export const DEFAULT_BAR: EvidenceBar = { min_approvals: 20, min_people: 2, min_days: 3 };

/** Sources that must support every suggestion. No option lowers it: one agent alone can never have a rule suggested. */
export const MIN_SOURCES = 2;
/** A faster vote is weak evidence and does not count. */
export const FAST_VOTE_MS = 3_000;
const DAY_MS = 86_400_000;

/** Whether the approval counts: each vote took its time, and nobody confirmed their own action. */
export function isStrong({ votes }: Pick<PastRequest, "votes">): boolean {
  return votes.length > 0 && votes.every(({ took_ms, exceptional }) => took_ms >= FAST_VOTE_MS && !exceptional);
}

/** What stands behind a set of approvals. */
export interface Support {
  approvals: number;
  /** Approvals that count: strong ones, at most half of the bar from each source. */
  counted: number;
  strong: number;
  people: number;
  agents: number;
  sources: number;
  days: number;
}

/** Returns what stands behind the approvals. */
export function measureSupport(approvals: readonly PastRequest[], { min_approvals }: EvidenceBar): Support {
  const strong = approvals.filter(isStrong);
  const bySource = new Map<string, number>();
  for (const { source } of strong) bySource.set(source, (bySource.get(source) ?? 0) + 1);
  const cap = Math.ceil(min_approvals / MIN_SOURCES);
  return {
    approvals: approvals.length,
    counted: [...bySource.values()].reduce((sum, count) => sum + Math.min(count, cap), 0),
    strong: strong.length,
    people: new Set(strong.flatMap(({ votes }) => votes.map(({ by }) => by))).size,
    agents: new Set(strong.map(({ agent_id }) => agent_id)).size,
    sources: bySource.size,
    days: new Set(strong.map(({ at }) => Math.floor(at / DAY_MS))).size,
  };
}

/** Whether the support meets the bar. */
export function meetsBar({ counted, people, sources, days }: Support, bar: EvidenceBar): boolean {
  return counted >= bar.min_approvals && people >= bar.min_people && days >= bar.min_days && sources >= MIN_SOURCES;
}
