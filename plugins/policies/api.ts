/** `assent/policies`: what features that name `policies` in `needs` may use of this one. */
export { BacktestRangeParams, FlipFields, parseBacktestRange, renderBacktest } from "./backtest-schemas.ts";
export { EnforceField, parseCandidates } from "./candidates.ts";
