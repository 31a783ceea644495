/** Counts actions by reading every row. This is slow, but simple enough to verify faster implementations. */
import type { ActionCounts, ActionRow, AnalyticsQuery } from "../../contract/storage.ts";
import { canSee } from "../../domain/visibility.ts";

export function countActions(rows: readonly ActionRow[], { visibility, boundaries }: AnalyticsQuery): ActionCounts {
  const [since, until] = [boundaries[0] as number, boundaries.at(-1) as number];
  const seen = rows.filter((row) => canSee(visibility, row) && row.created_at >= since && row.created_at < until);
  const countBy = (value: (row: ActionRow) => string, among: readonly ActionRow[] = seen): Map<string, number> => {
    const counts = new Map<string, number>();
    for (const row of among) counts.set(value(row), (counts.get(value(row)) ?? 0) + 1);
    return counts;
  };
  const listed = (value: (row: ActionRow) => string): { value: string; count: number }[] =>
    [...countBy(value)].map(([name, count]) => ({ value: name, count }));
  const settled = seen.filter((row) => row.waited_ms !== null);
  const waits = settled.map((row) => row.waited_ms as number).sort((a, b) => a - b);
  const rank = (percent: number): number | null =>
    waits[Math.max(0, Math.ceil((percent / 100) * waits.length) - 1)] ?? null;
  return {
    status: listed((row) => row.status),
    decision: listed((row) => row.decision),
    tool: listed((row) => row.tool),
    agent: listed((row) => row.agent_id),
    rule: [...countBy((row) => JSON.stringify(row.policy === null ? [null, null] : [row.policy, row.rule]))].map(
      ([text, count]) => {
        const [policy, rule] = JSON.parse(text) as [string | null, string | null];
        return { policy, rule, count };
      },
    ),
    series: boundaries.slice(1).map((end, i) => {
      const inside = seen.filter((row) => row.created_at >= (boundaries[i] as number) && row.created_at < end);
      return {
        status: Object.fromEntries(countBy((row) => row.status, inside)),
        decision: Object.fromEntries(countBy((row) => row.decision, inside)),
      };
    }),
    waits: {
      count: waits.length,
      approved: settled.filter((row) => row.approved_until !== null).length,
      p50: rank(50),
      p95: rank(95),
    },
  };
}
