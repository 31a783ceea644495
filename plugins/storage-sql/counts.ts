/**
 * Computes the results of analytics queries. Adds the sums of whole buckets, and counts the rows that are in no bucket
 * or are not included in the sums yet.
 */
import type { ActionCounts, AnalyticsQuery, SeriesCounts, StoredVisibility } from "../../src/storage/index.ts";
import { toPlainRow, type SqlReader, type Statement } from "./statement.ts";
import {
  DIMENSIONS,
  ALL_GRAINS,
  SERIES_DIMENSIONS,
  COARSE_GRAINS,
  type Dimension,
  type ActionGroup,
  type SumStatements,
} from "./sum-statements.ts";
import { toDimensionValues, parseCounts } from "./sums.ts";

/**
 * Reads the counts. Starts all statements in one turn of the event loop, so that the reads of a synchronous database
 * return the same state. For other databases, `db` must be a snapshot.
 */
export async function readCounts(
  statements: SumStatements,
  db: SqlReader,
  query: AnalyticsQuery,
): Promise<ActionCounts> {
  const { visibility } = query;
  const kind = visibilityKind(visibility);
  const visible =
    kind === "all"
      ? "*"
      : kind === "agent_id"
        ? `a:${(visibility as { agent_id: string }).agent_id}`
        : `k:${(visibility as { key_id: string }).key_id}`;
  const visibleColumns = {
    visible_agent: kind === "agent_id" ? visible.slice(2) : null,
    visible_key: kind === "key_id" ? visible.slice(2) : null,
  };
  const [since, until] = [query.boundaries[0] as number, query.boundaries.at(-1) as number];
  const totals = new Map(DIMENSIONS.map((dimension) => [dimension, new Map<string, number>()]));
  const series: SeriesCounts[] = query.boundaries.slice(1).map(() => ({ status: {}, decision: {} }));
  const addTotal = (dimension: Dimension, value: string, n: number): void => {
    const sums = totals.get(dimension) as Map<string, number>;
    sums.set(value, (sums.get(value) ?? 0) + n);
  };
  const addSeries = (segment: number, dimension: Dimension, value: string, n: number): void => {
    const counts = (series[segment] as SeriesCounts)[dimension as "status" | "decision"] as Record<string, number>;
    counts[value] = (counts[value] ?? 0) + n;
  };
  const work: Promise<void>[] = [];
  const read = (statement: Statement, values: object, each: (row: never) => void): void => {
    work.push(
      db
        .all(statement, { visible, ...visibleColumns, ...values })
        .then((rows) => rows.forEach((row) => each(toPlainRow<unknown>(row) as never))),
    );
  };

  const whole = coverWithBuckets([since, until], COARSE_GRAINS);
  for (const { grain, from, to } of whole.buckets) {
    for (const dimension of DIMENSIONS) {
      read(statements.buckets, { grain, dimension, from, to }, ({ counts }: { counts: string }) =>
        parseCounts(counts).forEach(([value, n]) => addTotal(dimension, value, n)),
      );
    }
  }
  for (const { from, to } of whole.rest) {
    read(statements.edge[kind], { from, to }, (row: ActionGroup) => {
      const values = toDimensionValues(row);
      for (const dimension of DIMENSIONS) addTotal(dimension, values[dimension], row.n);
    });
  }
  const parts = coverWithBuckets(query.boundaries, ALL_GRAINS);
  for (const { grain, from, to } of parts.buckets) {
    for (const dimension of SERIES_DIMENSIONS) {
      read(
        statements.buckets,
        { grain, dimension, from, to },
        ({ start, counts }: { start: number; counts: string }) => {
          const segment = segmentOf(query.boundaries, start);
          for (const [value, n] of parseCounts(counts)) addSeries(segment, dimension, value, n);
        },
      );
    }
  }
  for (const { from, to } of parts.rest) {
    const segment = segmentOf(query.boundaries, from);
    read(statements.edge[kind], { from, to }, (row: ActionGroup) =>
      SERIES_DIMENSIONS.forEach((dimension) => addSeries(segment, dimension, toDimensionValues(row)[dimension], row.n)),
    );
  }
  read(statements.tail[kind], { from: since, to: until }, (row: Omit<ActionGroup, "n"> & { created_at: number }) => {
    const values = toDimensionValues(row);
    for (const dimension of DIMENSIONS) addTotal(dimension, values[dimension], 1);
    for (const dimension of SERIES_DIMENSIONS)
      addSeries(segmentOf(query.boundaries, row.created_at), dimension, values[dimension], 1);
  });
  let waits: ActionCounts["waits"] = { count: 0, approved: 0, p50: null, p95: null };
  read(statements.waits[kind], { from: since, to: until }, (row: ActionCounts["waits"]) => (waits = row));
  await Promise.all(work);

  const listed = (dimension: Dimension): { value: string; count: number }[] =>
    [...(totals.get(dimension) as Map<string, number>)]
      .filter(([, count]) => count !== 0)
      .map(([value, count]) => ({ value, count }));
  for (const counts of series)
    for (const dimension of SERIES_DIMENSIONS)
      dropZeros(counts[dimension as "status" | "decision"] as Record<string, number>);
  return {
    status: listed("status"),
    decision: listed("decision"),
    tool: listed("tool"),
    agent: listed("agent"),
    rule: listed("rule").map(({ value, count }) => {
      const [policy, rule] = value === "" ? [null, null] : (JSON.parse(value) as [string, string | null]);
      return { policy, rule, count };
    }),
    series,
    waits,
  };
}

function visibilityKind(visibility: StoredVisibility): "all" | "agent_id" | "key_id" {
  return "all" in visibility ? "all" : "agent_id" in visibility ? "agent_id" : "key_id";
}

/** Removes values whose count is zero: a bucket can have a status that none of its actions has any more. */
function dropZeros(counts: Record<string, number>): void {
  for (const [value, count] of Object.entries(counts)) if (count === 0) delete counts[value];
}

/** Returns the index of the segment that contains `at`. */
function segmentOf(boundaries: readonly number[], at: number): number {
  let low = 0;
  let high = boundaries.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((boundaries[middle] as number) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

interface Span {
  from: number;
  to: number;
}

/**
 * Covers each segment with whole buckets, starting with the coarsest grain. Returns the buckets, with adjacent buckets
 * of the same grain joined, and the parts that no bucket covers.
 */
function coverWithBuckets(
  boundaries: readonly number[],
  grains: readonly number[],
): { buckets: (Span & { grain: number })[]; rest: Span[] } {
  const buckets: (Span & { grain: number })[] = [];
  const rest: Span[] = [];
  const cut = (from: number, to: number, grains: readonly number[]): void => {
    if (from >= to) return;
    const [grain, ...finer] = grains;
    if (grain === undefined) {
      rest.push({ from, to });
      return;
    }
    const first = Math.ceil(from / grain) * grain;
    const last = Math.floor(to / grain) * grain;
    if (first >= last) return cut(from, to, finer);
    cut(from, first, finer);
    const before = buckets.at(-1);
    if (before !== undefined && before.grain === grain && before.to === first) before.to = last;
    else buckets.push({ grain, from: first, to: last });
    cut(last, to, finer);
  };
  for (let i = 1; i < boundaries.length; i++) cut(boundaries[i - 1] as number, boundaries[i] as number, grains);
  return { buckets, rest };
}
