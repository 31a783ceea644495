/** Past requests in the form that suggestions use: the request, the votes, and the outcome. */
import type { JsonObject } from "../../../src/core.ts";

interface PastVote {
  /** Principal of the approver. */
  by: string;
  /** Time from the request or from the approver's previous vote, whichever is later, to this vote. Milliseconds. */
  took_ms: number;
  /** Whether the approver confirmed their own action, or gave a break-glass approval. */
  exceptional: boolean;
}

export interface PastRequest {
  action_id: string;
  agent_id: string;
  /**
   * The source under which the request is counted: the agent that the key is bound to, or else the key. So a key that
   * can name any agent counts as one source.
   */
  source: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context: JsonObject;
  /** Time of the request. Milliseconds. */
  at: number;
  /**
   * `approved`: people approved it as it was submitted. `rejected`: a person or a machine reviewer rejected it, an
   * approver changed it, or someone flagged it. `unanswered`: any other request.
   */
  verdict: "approved" | "rejected" | "unanswered";
  /** The approving votes. */
  votes: readonly PastVote[];
  /** Outcome of an approved action. */
  outcome: "succeeded" | "failed" | "unknown" | "not_run";
  /**
   * The only rule that requires approval now. Null if several rules do, if none does, or if a stricter answer decides.
   */
  asked: { policy: string; rule: string } | null;
}

/** Minimum evidence for a suggestion. */
export interface MinimumEvidence {
  /** Minimum number of approvals that count. */
  min_approvals: number;
  min_people: number;
  min_days: number;
}

/**
 * Minimum number of sources of every suggestion. No option lowers it, so that a single agent can never cause a
 * suggestion.
 */
const MIN_SOURCES = 2;
/** A faster vote is weak evidence and does not count. Milliseconds. */
const FAST_VOTE_MS = 3_000;
const DAY_MS = 86_400_000;

/**
 * Returns true if the approval counts: each vote took long enough, no vote is a self-confirmation, and no vote is a
 * break-glass approval.
 */
export function isStrongApproval({ votes }: Pick<PastRequest, "votes">): boolean {
  return votes.length > 0 && votes.every(({ took_ms, exceptional }) => took_ms >= FAST_VOTE_MS && !exceptional);
}

/** The support of a set of approvals. */
interface ApprovalSupport {
  approvals: number;
  /**
   * Number of strong approvals, capped for each source at half of `min_approvals`, so that no single agent or key can
   * supply all of them.
   */
  counted: number;
  strong: number;
  people: number;
  agents: number;
  sources: number;
  days: number;
}

/** Returns the support of a suggestion: sources, people and counted approvals. */
export function measureSupport(approvals: readonly PastRequest[], { min_approvals }: MinimumEvidence): ApprovalSupport {
  const strong = approvals.filter(isStrongApproval);
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

/** Returns true if the support reaches every minimum. */
export function hasMinimumEvidence(
  { counted, people, sources, days }: ApprovalSupport,
  minimum: MinimumEvidence,
): boolean {
  return (
    counted >= minimum.min_approvals &&
    people >= minimum.min_people &&
    days >= minimum.min_days &&
    sources >= MIN_SOURCES
  );
}
