/**
 * Maintains sums over actions, so that analytics do not have to read every row. Actions are added to the sums in
 * ascending order of decision_seq; `folded` is the decision_seq of the last action that was added. Actions that have
 * not been added yet, and parts of a time range that do not fill a bucket, are counted from rows, so the result is
 * always exact. The sums advance by decision_seq instead of by time, so clock changes do not matter.
 */
import { encodeRowsParameter, toPlainRow, type SqlExecutor, type SqlRow } from "./statement.ts";
import {
  ALL_GRAINS,
  BUCKET_COLUMNS,
  COARSE_GRAINS,
  COUNT_COLUMNS,
  DIMENSIONS,
  SERIES_DIMENSIONS,
  type Dimension,
  type ActionGroup,
  type SumStatements,
} from "./sum-statements.ts";

const grainsOf = (dimension: Dimension): readonly number[] =>
  SERIES_DIMENSIONS.includes(dimension) ? ALL_GRAINS : COARSE_GRAINS;

export const toDimensionValues = (row: Omit<ActionGroup, "n">): Record<Dimension, string> => ({
  status: row.status,
  decision: row.decision,
  tool: row.tool,
  agent: row.agent_id,
  rule: row.policy === null ? "" : JSON.stringify([row.policy, row.rule]),
});

/** Returns the visibilities whose sums include an action. */
const visibles = (row: { agent_id: string; submitted_by: string }): string[] => [
  "*",
  `a:${row.agent_id}`,
  `k:${row.submitted_by}`,
];

/** Adds at most `max` actions to the sums. Resolves to the number of added actions. */
export async function addActionsToSums(statements: SumStatements, db: SqlExecutor, max: number): Promise<number> {
  const { folded } = toPlainRow<{ folded: number }>((await db.all(statements.state, {}))[0] as SqlRow);
  const { last, n } = toPlainRow<{ last: number | null; n: number }>(
    (await db.all(statements.next, { folded, max }))[0] as SqlRow,
  );
  if (last === null) return 0;
  const changes = bucketChanges();
  for (const row of await db.all(statements.fold, { folded, last })) {
    const group = toPlainRow<ActionGroup & { quarter: number }>(row);
    const values = toDimensionValues(group);
    for (const visible of visibles(group))
      for (const dimension of DIMENSIONS)
        for (const grain of grainsOf(dimension))
          changes.add({ grain, visible, dimension, start: group.quarter }, values[dimension], group.n);
  }
  await changes.apply(statements, db);
  await db.run(statements.setFolded, { folded: last });
  return n;
}

/** Counts per value for one interval, visibility and dimension. Each bucket is one row, so an action updates few rows. */
interface Bucket {
  grain: number;
  visible: string;
  dimension: Dimension;
  start: number;
  counts: Map<string, number>;
}

function count(counts: Map<string, number>, value: string, n: number): void {
  const sum = (counts.get(value) ?? 0) + n;
  if (sum === 0) counts.delete(value);
  else counts.set(value, sum);
}

export function parseCounts(text: string): [value: string, n: number][] {
  return Object.entries(JSON.parse(text) as Record<string, number>);
}

const keyOf = ({ grain, visible, dimension, start }: Omit<Bucket, "counts">): string =>
  `${grain} ${start} ${dimension} ${visible}`;

/** Collects additions to sums, so that each bucket is read and written by one statement. */
function bucketChanges() {
  const changes = new Map<string, Bucket>();
  return {
    /** @param at the bucket; `start` can be any time in it */
    add(at: Omit<Bucket, "counts">, value: string, n: number): void {
      const bucketKey = { ...at, start: at.start - (at.start % at.grain) };
      const key = keyOf(bucketKey);
      let bucket = changes.get(key);
      if (bucket === undefined) changes.set(key, (bucket = { ...bucketKey, counts: new Map() }));
      count(bucket.counts, value, n);
    },
    async apply(statements: SumStatements, db: SqlExecutor): Promise<void> {
      const buckets = [...changes.values()];
      if (buckets.length === 0) return;
      const stored = new Map<string, string>();
      for (const row of await db.all(statements.bucketsOf, {
        buckets: encodeRowsParameter(Object.keys(BUCKET_COLUMNS), buckets),
      })) {
        const { counts, ...bucket } = toPlainRow<Omit<Bucket, "counts"> & { counts: string }>(row);
        stored.set(keyOf(bucket), counts);
      }
      const rows = buckets.map((bucket) => {
        const text = stored.get(keyOf(bucket));
        const counts = new Map(text === undefined ? [] : parseCounts(text));
        for (const [value, n] of bucket.counts) count(counts, value, n);
        return { ...bucket, counts: JSON.stringify(Object.fromEntries(counts)) };
      });
      await db.run(statements.putBuckets, { buckets: encodeRowsParameter(Object.keys(COUNT_COLUMNS), rows) });
    },
  };
}

/**
 * Collects the status changes of one transaction. `apply` updates the sums that include the changed actions; call it
 * before the commit.
 */
export interface StatusChangeCollector {
  add(id: string, from: string, to: string): void;
  apply(): Promise<void>;
}

export function createStatusChangeCollector(statements: SumStatements, db: SqlExecutor): StatusChangeCollector {
  const moves = new Map<string, [from: string, to: string][]>();
  return {
    add(id, from, to) {
      if (from !== to) moves.set(id, [...(moves.get(id) ?? []), [from, to]]);
    },
    async apply() {
      if (moves.size === 0) return;
      const ids = encodeRowsParameter(
        ["id"],
        [...moves.keys()].map((id) => ({ id })),
      );
      const changes = bucketChanges();
      for (const row of await db.all(statements.foldedActions, { ids })) {
        const action = toPlainRow<{ id: string; created_at: number; agent_id: string; submitted_by: string }>(row);
        for (const visible of visibles(action))
          for (const grain of ALL_GRAINS)
            for (const [from, to] of moves.get(action.id) ?? []) {
              const bucket = { grain, visible, dimension: "status" as const, start: action.created_at };
              changes.add(bucket, from, -1);
              changes.add(bucket, to, 1);
            }
      }
      await changes.apply(statements, db);
    },
  };
}
