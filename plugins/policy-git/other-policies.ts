/** Removes the names of other teams' policies from a report that is posted to a repository. */
import type { BacktestReport } from "../policies/api.ts";

type Flip = BacktestReport["flips"][number];

/** Returns the report without the names of policies that are not in `ownPolicies`, and without examples. */
export function hideOtherPolicies(report: BacktestReport, ownPolicies: ReadonlySet<string>): BacktestReport {
  const hide = ({ effect, policy, rule }: Flip["from"]): Flip["from"] =>
    policy === null || ownPolicies.has(policy)
      ? { effect, policy, rule }
      : { effect, policy: "another policy", rule: null };
  const flips = new Map<string, Flip>();
  for (const flip of report.flips) {
    const [from, to] = [hide(flip.from), hide(flip.to)];
    const key = JSON.stringify([from, to]);
    flips.set(key, { from, to, count: flip.count + (flips.get(key)?.count ?? 0), examples: [] });
  }
  return {
    ...report,
    flips: [...flips.values()].sort((a, b) => b.count - a.count),
    counted: report.counted.filter(({ policy }) => ownPolicies.has(policy)),
  };
}
