/** Input and result of a backtest, which evaluates past requests against another policy set. */
import type { Effect, Visibility } from "../../../src/core.ts";

export interface BacktestRange {
  visibility: Visibility;
  /** Earliest creation time of the actions, in milliseconds. Inclusive. */
  since: number;
  /** Latest creation time of the actions. Exclusive. */
  until: number;
  /** Restricts the range to decisions with a smaller sequence number. Set it to the `next` of an earlier report. */
  before_seq?: number;
  /** Maximum number of evaluated decisions. */
  limit: number;
  /** Time limit in milliseconds. */
  budgetMs: number;
  /** Maximum number of examples in each flip group. */
  examples: number;
  signal?: AbortSignal;
  /** Called after each page. */
  progress?(done: BacktestCounts): void | Promise<void>;
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

/** Decisions whose outcomes change in the same way, for example from allow to deny. */
export interface FlipGroup {
  from: DecisionOutcome;
  to: DecisionOutcome;
  count: number;
  examples: FlipExample[];
}

export interface BacktestCounts {
  evaluated: number;
  /** Number of decisions whose effect changed. */
  flipped: number;
  /** Number of decisions with the same effect whose matching rule or approval terms changed. */
  otherwise: number;
  /** Number of decisions that were not evaluated because the request was erased. */
  erased: number;
  /**
   * Number of decisions that were not evaluated because the policies read past actions, facts or attributes that the
   * recorded decision did not read.
   */
  unrecorded: number;
  /** Number of decisions that were not evaluated because the stored row was altered and cannot be evaluated. */
  altered: number;
}

export interface BacktestReport extends BacktestCounts {
  /** Most frequent first. */
  flips: FlipGroup[];
  /** Number of changed decisions in groups that are not in `flips`. */
  unlisted: number;
  /** Limits whose use the decisions did not record. The backtest counts their use itself, starting at zero. */
  counted: { policy: string; limit: string; decisions: number }[];
  /** Value of `before_seq` for the next page; null after the last page. */
  next: number | null;
}
