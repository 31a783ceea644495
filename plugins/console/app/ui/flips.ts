/** Combines and groups the flips of backtests: past decisions that would now have a different effect. Pure. */
import type { Backtest } from "../core/api-types.ts";

export type Flip = Backtest["flips"][number];
export type FlipOutcome = Flip["from"];
/** The members that reports of backtests and of shadow mode have in common. */
export type FlipReport = Pick<
  Backtest,
  | "since"
  | "until"
  | "evaluated"
  | "flipped"
  | "otherwise"
  | "erased"
  | "unrecorded"
  | "altered"
  | "flips"
  | "unlisted"
  | "next"
>;

/** Flips that have the same outcome. */
interface RuleFlips {
  to: FlipOutcome;
  count: number;
  flips: Flip[];
}

const STRICTNESS: Readonly<Record<string, number>> = { allow: 0, require_approval: 1, deny: 2 };

/** Returns a key for the old and the new outcome of a flip. */
export function flipKey({ from, to }: Pick<Flip, "from" | "to">): string {
  return JSON.stringify([from.effect, from.policy, from.rule, to.effect, to.policy, to.rule]);
}

/** Joins a report with its continuation over the same range. */
export function joinReports(first: FlipReport | null, more: FlipReport): FlipReport {
  if (first === null) return more;
  const flips = new Map<string, Flip>(first.flips.map((flip: Flip) => [flipKey(flip), flip]));
  for (const flip of more.flips) {
    const same = flips.get(flipKey(flip));
    const examples = same === undefined || same.examples.length === 0 ? flip.examples : same.examples;
    flips.set(flipKey(flip), { ...flip, count: flip.count + (same?.count ?? 0), examples });
  }
  return {
    ...more,
    evaluated: first.evaluated + more.evaluated,
    flipped: first.flipped + more.flipped,
    otherwise: first.otherwise + more.otherwise,
    erased: first.erased + more.erased,
    unrecorded: first.unrecorded + more.unrecorded,
    altered: first.altered + more.altered,
    unlisted: first.unlisted + more.unlisted,
    flips: [...flips.values()].sort((a: Flip, b: Flip) => b.count - a.count),
  };
}

/** Groups flips by the rule that would decide. The rule with the most flips comes first. */
export function groupByRule(flips: readonly Flip[]): RuleFlips[] {
  const rules = new Map<string, RuleFlips>();
  for (const flip of flips) {
    const key = JSON.stringify([flip.to.policy, flip.to.rule, flip.to.effect]);
    const rule = rules.get(key) ?? { to: flip.to, count: 0, flips: [] };
    rule.count += flip.count;
    rule.flips.push(flip);
    rules.set(key, rule);
  }
  return [...rules.values()].sort((a, b) => b.count - a.count);
}

/** Whether the new outcome is less strict: the action now runs, or runs without an approval. */
export function isLessStrict({ from, to }: Pick<Flip, "from" | "to">): boolean {
  return (STRICTNESS[to.effect] ?? 2) < (STRICTNESS[from.effect] ?? 2);
}
