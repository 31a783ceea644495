/** What the thread for policy trials reads and returns: past decisions, and suggested policies with their evidence. */
import type { Effect, RecordedFacts } from "../../../src/core.ts";
import type { Evidence } from "./evidence.ts";
import type { MinimumEvidence, PastRequest } from "./past-request.ts";

export interface SuggestionRange extends MinimumEvidence {
  /** Earliest creation time of the actions, in milliseconds. Inclusive. */
  since: number;
  /** Latest creation time of the actions. Exclusive. */
  until: number;
  /** Maximum number of decisions. Reads the newest decisions. */
  limit: number;
}

/** A past decision in the form that is sent to the thread for policy trials. The times of votes are absolute. */
export interface PastDecision extends Pick<PastRequest, "action_id" | "source" | "at" | "verdict" | "outcome"> {
  /** JSON of the request. */
  request: string;
  past: string | null;
  facts: RecordedFacts;
  effect: Effect;
  votes: { by: string; at: number; exceptional: boolean }[];
}

export interface PastDecisionPage {
  decisions: PastDecision[];
  /** Number of decisions that were read, including those that are not returned. */
  read: number;
  /** Number of decisions that are not returned, because the request was erased or altered, or is too large. */
  skipped: number;
  /** Position of the next page; null after the last page. */
  next: number | null;
}

/** Selects a page of past decisions, newest first. `before` is the position of the page; null for the first page. */
export type PastDecisionQuery = Pick<SuggestionRange, "since" | "until" | "limit"> & { before: number | null };

export interface SuggestedPolicy {
  /** Name of the policy: a digest of the rule, so that equal rules get equal names. */
  policy: string;
  in_place_of: { policy: string; rule: string };
  tool: string;
  operation: string;
  agents: string[];
  /** The rule's condition in CEL, and its parts. */
  when: string;
  conditions: { kind: string; member: string | null; text: string; words: string }[];
  /** The policy in shadow mode. */
  yaml: string;
  /** Tests made from real actions, for the folder of the policies. */
  tests: string;
  evidence: Evidence;
}

export interface SuggestionReport {
  suggestions: SuggestedPolicy[];
  /** Number of decisions that were read. */
  read: number;
  skipped: number;
  /** Number of groups. A group contains the approvals of one rule, tool and operation. */
  groups: number;
  /**
   * Number of rules that were discarded because they would have allowed a rejected request, lack the minimum evidence,
   * or cannot be in the policy set.
   */
  disqualified: number;
  /** Whether the range contains older decisions that were not read. */
  truncated: boolean;
}
