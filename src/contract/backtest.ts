/** Input and result of a backtest, which evaluates past requests against another policy set. */
import type { Effect } from "../domain/policy/policy-types.ts";
import type { Visibility } from "../domain/visibility.ts";

export interface BacktestRange {
  visibility: Visibility;
  /** Earliest creation time of the actions, in milliseconds. Inclusive. */
  since: number;
  /** Exclusive. */
  until: number;
  /** Restricts the range to decisions with a smaller sequence number: the `next` of an earlier report. */
  before_seq?: number;
  /** Maximum number of decisions. */
  limit: number;
  /** Time limit in milliseconds. */
  budgetMs: number;
  /** Maximum number of examples in each flip group. */
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

/** Decisions that change from one outcome to the same other outcome. */
export interface FlipGroup {
  from: DecisionOutcome;
  to: DecisionOutcome;
  count: number;
  examples: FlipExample[];
}

export interface BacktestCounts {
  evaluated: number;
  /** The effect changed. */
  flipped: number;
  /** The effect is the same, but another rule matched or the approval terms differ. */
  otherwise: number;
  /** Not evaluated, because the request was erased. */
  erased: number;
  /** Not evaluated, because the new policies read past actions that the recorded decision did not read. */
  unrecorded: number;
  /** Not evaluated, because someone changed the stored row. */
  altered: number;
}

export interface BacktestReport extends BacktestCounts {
  /** Most frequent first. */
  flips: FlipGroup[];
  /** Flips in groups that `flips` does not list. */
  unlisted: number;
  /** Limits without recorded use. The backtest counts their use from its own decisions, starting at zero. */
  counted: { policy: string; limit: string; decisions: number }[];
  /** Value of `before_seq` for the next page; null after the last page. */
  next: number | null;
}
