/** The sums of the contract, counted from the rows one by one: what every other storage must answer. */
import type { ActionRow, ActionSums, AnalyticsQuery } from "../contract/storage.ts";
import { ACTION_STATUSES } from "../domain/actions.ts";
import { maySee } from "../domain/visibility.ts";

export function sumActions(all: Iterable<ActionRow>, waitOf: (id: string) => number | undefined, { visibility, edges }: AnalyticsQuery): ActionSums {
  const since = edges[0] as number;
  const until = edges.at(-1) as number;
  const rows = [...all].filter((row) => maySee(visibility, row) && row.created_at >= since && row.created_at < until);
  const segments = edges.slice(1).map((end, i) => {
    const inside = rows.filter((row) => row.created_at >= (edges[i] as number) && row.created_at < end);
    const count = (test: (row: ActionRow) => boolean): number => inside.filter(test).length;
    const decision = { allow: count((row) => row.decision === "allow"), deny: count((row) => row.decision === "deny"), require_approval: count((row) => row.decision === "require_approval") };
    const status = Object.fromEntries(ACTION_STATUSES.map((name) => [name, count((row) => row.status === name)]));
    return { decision, status: status as ActionSums["segments"][number]["status"] };
  });
  const waits = rows.map((row) => waitOf(row.id)).filter((ms): ms is number => ms !== undefined).sort((a, b) => a - b);
  const rank = (percent: number): number | null => waits[Math.ceil((waits.length * percent) / 100) - 1] ?? null;
  return {
    segments,
    tools: tally(rows, ({ tool }) => ({ tool })),
    agents: tally(rows, ({ agent_id }) => ({ agent_id })),
    rules: tally(rows, ({ policy, rule }) => ({ policy, rule })),
    waits: { count: waits.length, p50: rank(50), p95: rank(95) },
  };
}

function tally<T extends Record<string, string | null>>(rows: readonly ActionRow[], nameOf: (row: ActionRow) => T): (T & { count: number })[] {
  const counts = new Map<string, { name: T; count: number }>();
  for (const row of rows) {
    const name = nameOf(row);
    const key = JSON.stringify(name);
    const found = counts.get(key) ?? { name, count: 0 };
    found.count++;
    counts.set(key, found);
  }
  return [...counts.values()].sort((a, b) => b.count - a.count || compare(Object.values(a.name), Object.values(b.name))).map(({ name, count }) => ({ ...name, count }));
}

function compare(a: readonly (string | null)[], b: readonly (string | null)[]): number {
  const at = a.findIndex((part, i) => part !== b[i]);
  if (at < 0) return 0;
  const [x, y] = [a[at] ?? null, b[at] ?? null];
  return x === null || (y !== null && x < y) ? -1 : 1;
}
