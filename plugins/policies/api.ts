/** `assent/policies`: what this feature exports to features that name `policies` in `needs`. */
export { backtest, readAllDecisions } from "./backtest/backtest.ts";
export { type DatedReport, renderBacktestMarkdown, unrecordedLimitText } from "./backtest/render-markdown.ts";
export type { BacktestCounts, BacktestReport, DecisionOutcome } from "./backtest/report.ts";
export { runBacktest } from "./backtest/run-backtest.ts";
export { BacktestRangeParams, FlipFields, parseBacktestRange, renderBacktest } from "./backtest/schemas.ts";
export { EnforceField, parseCandidates } from "./candidates.ts";
