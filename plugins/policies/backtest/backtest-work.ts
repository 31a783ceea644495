/** Runs on the thread for policy trials. */
import type { TrialContext } from "../../../src/core.ts";
import { backtest, type BacktestReader } from "./backtest.ts";
import type { BacktestCounts, BacktestReport } from "./report.ts";
import type { BacktestInput, BacktestQuery } from "./run-backtest.ts";

type Context = TrialContext<BacktestInput, BacktestQuery, unknown>;

/** Evaluates the decisions of the range. Limits its own time, and then returns a partial report. */
export default function backtestOnThread({
  sets: [set, previous],
  input: { reportsProgress, ...range },
  read,
  yieldWithoutLimit,
  signal,
}: Context): Promise<BacktestReport> {
  const reader: BacktestReader = {
    decisionSpan: (...args) => read({ kind: "span", args }) as ReturnType<BacktestReader["decisionSpan"]>,
    decisions: (...args) => read({ kind: "decisions", args }) as ReturnType<BacktestReader["decisions"]>,
  };
  const progress = reportsProgress
    ? { progress: async (counts: BacktestCounts) => void (await read({ kind: "progress", counts })) }
    : {};
  // The main thread enforces the caller's visibility, and reads only visible rows.
  const visible = { visibility: { all: true } } as const;
  return backtest(reader, set, { ...range, ...visible, signal, ...progress }, yieldWithoutLimit, previous ?? null);
}
