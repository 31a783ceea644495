/** Past decisions made again: which of them, and what comes of it. */
import type { Effect } from "../domain/policy/types.ts";
import type { Visibility } from "./storage.ts";

export interface BacktestRange {
  visibility: Visibility;
  /** Milliseconds; of the actions' creation. Inclusive. */
  since: number;
  /** Exclusive. */
  until: number;
  /** Only decisions with a smaller sequence: the cursor of an earlier answer. */
  before_seq?: number;
  /** Most decisions. */
  limit: number;
  /** Most milliseconds. */
  budgetMs: number;
  /** Examples of each kind of flip. */
  examples: number;
  signal?: AbortSignal;
  progress?(done: BacktestCounts): void;
}

export interface DecisionOutcome {
  effect: Effect;
  policy: string | null;
  rule: string | null;
}

export interface FlipExample {
  action_id: string;
  hash: string;
  at: string;
  agent_id: string;
  tool: string;
  operation: string;
}

/** Decisions that go from one outcome to another. */
export interface FlipGroup {
  from: DecisionOutcome;
  to: DecisionOutcome;
  count: number;
  examples: FlipExample[];
}

export interface BacktestCounts {
  evaluated: number;
  /** Another effect. */
  flipped: number;
  /** The same effect by another rule, or on other terms of approval. */
  otherwise: number;
  /** Not evaluated, because what was asked was erased. */
  erased: number;
  /** Not evaluated, because the store's row cannot be read as what the service wrote: someone changed it. */
  altered: number;
}

export interface BacktestReport extends BacktestCounts {
  /** Most frequent first. */
  flips: FlipGroup[];
  /** Flips of kinds beyond those listed. */
  unlisted: number;
  /** Limits that had no recorded use: counted from the decisions that this report is about, as if nothing was used before. */
  counted: { policy: string; limit: string; decisions: number }[];
  /** Sequence to go on before; null when the range is done. */
  next: number | null;
}
