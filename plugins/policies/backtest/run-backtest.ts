/** Runs a backtest on the thread for policy trials, which reads the store through the main thread. */
import { type CompiledPolicySet, type CoreHost, type SerializedPolicySet, siblingModule } from "../../../src/core.ts";
import type { BacktestReader } from "./backtest.ts";
import type { BacktestCounts, BacktestRange, BacktestReport } from "./report.ts";

const WORK = siblingModule(import.meta.url, "backtest-work");

/** The range, without members that the thread does not need. */
export interface BacktestInput extends Omit<BacktestRange, "visibility" | "signal" | "progress"> {
  /** Whether the caller wants reports of progress. */
  reportsProgress: boolean;
}

/** A read of the store, or a report of progress. */
export type BacktestQuery =
  | { kind: "span"; args: Parameters<BacktestReader["decisionSpan"]> }
  | { kind: "decisions"; args: Parameters<BacktestReader["decisions"]> }
  | { kind: "progress"; counts: BacktestCounts };

/**
 * Evaluates past decisions again with another set, each with its own request, facts and time. Compares each result with
 * the decision of the set `previous`, or with the recorded decision if there is no `previous`. Resolves to a partial
 * report at the time limit of the range and when its signal aborts; otherwise rejects as `PolicyTrials` does.
 */
export function runBacktest(
  trials: CoreHost["policies"]["trials"],
  reader: BacktestReader,
  set: CompiledPolicySet | SerializedPolicySet,
  { visibility, signal, progress, ...range }: BacktestRange,
  previous: CompiledPolicySet | null = null,
): Promise<BacktestReport> {
  return trials.run<BacktestInput, BacktestReport, BacktestQuery, unknown>(
    previous === null ? [set] : [set, previous],
    {
      module: WORK,
      input: { ...range, reportsProgress: progress !== undefined },
      async read(query) {
        if (query.kind === "span") return reader.decisionSpan(...query.args);
        // The caller's visibility is that of this thread, whatever the other thread sends.
        if (query.kind === "decisions") return reader.decisions({ ...query.args[0], visibility });
        return progress?.(query.counts);
      },
    },
    signal,
  );
}
