/** Formats the rows of a measurement: elapsed time, and the cost of one decision. */
import { mean, type Measured } from "./load.ts";
import { perDecision, type Reading } from "./meter.ts";

export const HEADER =
  "connections  what                            req/s   p50 ms   p95 ms   p99 ms  CPU µs   db µs  batch  statements   rows  bytes  KB written  serial µs";

/** The alternating measurements of one variant. */
export class Turns {
  private readonly measured: Measured[] = [];
  private readonly costs: Reading[] = [];

  add(measured: Measured, before: Reading, after: Reading): void {
    this.measured.push(measured);
    this.costs.push(perDecision(before, after, measured.requests));
  }

  mean(): Measured {
    return mean(this.measured);
  }

  cost(name: keyof Reading): number {
    return this.costs.reduce((sum, cost) => sum + cost[name], 0) / this.costs.length;
  }
}

/**
 * Formats a row. "serial µs" is the time for which the lock was held for each decision. `database` is 0 if the database
 * runs in the service's process. Unknown values are omitted.
 */
export function rowOf(connections: number, name: string, turns: Turns, note = ""): string {
  const cell = (n: number, digits: number, width: number): string =>
    (Number.isFinite(n) ? n.toFixed(digits) : "").padStart(width);
  const { rps, p50, p95, p99 } = turns.mean();
  const cost = (of: keyof Reading, digits: number, width: number): string => cell(turns.cost(of), digits, width);
  return `${String(connections).padStart(11)}  ${name.padEnd(28)}${cell(rps, 0, 9)}${cell(p50, 1, 9)}${cell(p95, 1, 9)}${cell(p99, 1, 9)}${cost("service", 0, 8)}${cost("database", 0, 8)}${cost("batches", 1, 7)}${cost("statements", 2, 12)}${cost("rows", 2, 7)}${cost("bytes", 0, 7)}${cell(turns.cost("written") / 1024, 1, 12)}${cost("locked", 0, 11)}   ${note}`.trimEnd();
}

export function percent(ratio: number): string {
  return Number.isFinite(ratio) ? `${(ratio * 100).toFixed(0)} %` : "nothing";
}
