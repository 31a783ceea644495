/**
 * Maintained sums over actions, so that analytics do not read every row. Actions are folded in by
 * ascending decision_seq; `folded` says how far. What is not folded yet, and what a sum's grain is
 * too coarse for, is counted from the rows, so that the answer is exact at any moment. Sums are
 * additive over decision_seq, and so it does not matter that the clock may go back.
 */
import { sql, type Kysely } from "kysely";
import type { ActionCounts, AnalyticsQuery, SeriesCounts } from "../../src/contract/storage.ts";
import type { Visibility } from "../../src/domain/visibility.ts";
import type { Tables } from "./schema.ts";
import { param, params, plain, prepare, type SqlExecutor, type SqlRow, type Statement } from "./statement.ts";

export const HOUR = 3_600_000;
export const DAY = 86_400_000;
/** Every time zone in use begins its hours on one. Only for what a series shows. */
export const QUARTER = 900_000;
const DIMENSIONS = ["status", "decision", "tool", "agent", "rule"] as const;
type Dimension = (typeof DIMENSIONS)[number];
const SERIES: readonly Dimension[] = ["status", "decision"];
const WHOLE = [DAY, HOUR] as const;
const FINE = [DAY, HOUR, QUARTER] as const;
const grainsOf = (dimension: Dimension): readonly number[] => (SERIES.includes(dimension) ? FINE : WHOLE);

const GROUP = ["agent_id", "submitted_by", "tool", "policy", "rule", "decision", "status"] as const;
type Group = Pick<Tables["actions"], (typeof GROUP)[number]> & { n: number };

export type SumStatements = ReturnType<typeof prepareSums>;

export function prepareSums(db: Kysely<Tables>) {
  const folded = sql<number>`(select folded from sums_state where id = 1)`;
  const seen = {
    all: sql<boolean>`1 = 1`,
    // Concatenated, so that no index over the agent or the key is taken in place of the one that the range needs.
    agent_id: sql<boolean>`agent_id || '' = ${param("visible_agent")}`,
    key_id: sql<boolean>`submitted_by || '' = ${param("visible_key")}`,
  };
  const byVisibility = <T>(make: (visible: keyof typeof seen) => T): Record<keyof typeof seen, T> => ({ all: make("all"), agent_id: make("agent_id"), key_id: make("key_id") });
  const counted = db.selectFrom("actions").select([...GROUP, (eb) => eb.fn.countAll<number>().as("n")]).groupBy([...GROUP]);
  return {
    buckets: prepare(
      db.selectFrom("action_sums").select(["start", "counts"])
        .where("grain", "=", param("grain")).where("visible", "=", param("visible")).where("dimension", "=", param("dimension"))
        .where("start", ">=", param("from")).where("start", "<", param("to")),
    ),
    bucket: prepare(
      db.selectFrom("action_sums").select("counts")
        .where("grain", "=", param("grain")).where("visible", "=", param("visible")).where("dimension", "=", param("dimension")).where("start", "=", param("start")),
    ),
    /** Folded rows of a span that no bucket fits. */
    edge: byVisibility((visible) =>
      prepare(counted.where("created_at", ">=", param("from")).where("created_at", "<", param("to")).where(sql<boolean>`decision_seq + 0 <= ${folded}`).where(seen[visible])),
    ),
    /** Rows that are not folded yet. `+ 0`: found by sequence, not by time. */
    tail: byVisibility((visible) =>
      prepare(
        db.selectFrom("actions").select(["created_at", ...GROUP]).where(sql<boolean>`decision_seq > ${folded}`)
          .where(sql<boolean>`created_at + 0 >= ${param("from")}`).where(sql<boolean>`created_at + 0 < ${param("to")}`).where(seen[visible]),
      ),
    ),
    waits: byVisibility((visible) => {
      const waits = db.selectFrom("actions")
        .select(["waited_ms", sql<number>`row_number() over (order by waited_ms)`.as("place"), sql<number>`count(*) over ()`.as("total")])
        .where("waited_ms", "is not", null).where("created_at", ">=", param("from")).where("created_at", "<", param("to")).where(seen[visible]);
      return prepare(
        db.with("waits", () => waits).selectFrom("waits").select([
          sql<number>`count(*)`.as("count"),
          sql<number | null>`min(case when place * 100 >= total * 50 then waited_ms end)`.as("p50"),
          sql<number | null>`min(case when place * 100 >= total * 95 then waited_ms end)`.as("p95"),
        ]),
      );
    }),
    state: prepare(db.selectFrom("sums_state").select("folded").where("id", "=", sql.lit(1))),
    next: prepare(
      db.selectFrom(db.selectFrom("actions").select("decision_seq").where("decision_seq", ">", param("folded")).orderBy("decision_seq").limit(param<number>("max")).as("next"))
        .select([(eb) => eb.fn.max("decision_seq").as("last"), (eb) => eb.fn.countAll<number>().as("n")]),
    ),
    fold: prepare(
      db.selectFrom("actions").select([sql<number>`created_at / 900000`.as("quarter"), ...GROUP, (eb) => eb.fn.countAll<number>().as("n")])
        .where("decision_seq", ">", param("folded")).where("decision_seq", "<=", param("last")).groupBy([sql`created_at / 900000`, ...GROUP]),
    ),
    putBucket: prepare(
      db.insertInto("action_sums").values(params<never>(["grain", "visible", "dimension", "start", "counts"]))
        .onConflict((conflict) => conflict.columns(["grain", "visible", "dimension", "start"]).doUpdateSet({ counts: sql<string>`excluded.counts` })),
    ),
    setFolded: prepare(db.updateTable("sums_state").set({ folded: param<number>("folded") }).where("id", "=", sql.lit(1))),
    foldedAction: prepare(
      db.selectFrom("actions").select(["created_at", "agent_id", "submitted_by"]).where("id", "=", param("id")).where(sql<boolean>`decision_seq <= ${folded}`),
    ),
  };
}

const valuesOf = (row: Omit<Group, "n">): Record<Dimension, string> => ({
  status: row.status, decision: row.decision, tool: row.tool, agent: row.agent_id,
  rule: row.policy === null ? "" : JSON.stringify([row.policy, row.rule]),
});

/** Whose sums an action is in. */
const visibles = (row: { agent_id: string; submitted_by: string }): string[] => ["*", `a:${row.agent_id}`, `k:${row.submitted_by}`];

/** Folds up to `max` actions. Answers how many. */
export async function foldSums(statements: SumStatements, db: SqlExecutor, max: number): Promise<number> {
  const { folded } = plain<{ folded: number }>((await db.all(statements.state, {}))[0] as SqlRow);
  const { last, n } = plain<{ last: number | null; n: number }>((await db.all(statements.next, { folded, max }))[0] as SqlRow);
  if (last === null) return 0;
  const changes = new Map<string, Bucket>();
  for (const row of await db.all(statements.fold, { folded, last })) {
    const group = plain<Group & { quarter: number }>(row);
    const at = group.quarter * QUARTER;
    const values = valuesOf(group);
    for (const visible of visibles(group)) {
      for (const dimension of DIMENSIONS) {
        for (const grain of grainsOf(dimension)) {
          const start = at - (at % grain);
          const key = `${grain} ${start} ${dimension} ${visible}`;
          let bucket = changes.get(key);
          if (bucket === undefined) changes.set(key, (bucket = { grain, visible, dimension, start, counts: new Map() }));
          count(bucket.counts, values[dimension], group.n);
        }
      }
    }
  }
  await applyChanges(statements, db, [...changes.values()]);
  await db.run(statements.setFolded, { folded: last });
  return n;
}

/** Counts by value of one stretch of time, for one who sees and by one thing: a row, so that an action costs few of them. */
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

function parseCounts(text: string): [value: string, n: number][] {
  return Object.entries(JSON.parse(text) as Record<string, number>);
}

async function applyChanges(statements: SumStatements, db: SqlExecutor, changes: readonly Bucket[]): Promise<void> {
  const stored = await Promise.all(changes.map((bucket) => db.all(statements.bucket, bucket)));
  const rows = changes.map((bucket, i) => {
    const row = stored[i]?.[0];
    const counts = new Map(row === undefined ? [] : parseCounts(plain<{ counts: string }>(row).counts));
    for (const [value, n] of bucket.counts) count(counts, value, n);
    return { ...bucket, counts: JSON.stringify(Object.fromEntries(counts)) };
  });
  await db.runMany(statements.putBucket, rows);
}

/** A folded action changed its status: its sums move with it. */
export async function moveStatus(statements: SumStatements, db: SqlExecutor, id: string, from: string, to: string): Promise<void> {
  if (from === to) return;
  const row = (await db.all(statements.foldedAction, { id }))[0];
  if (row === undefined) return;
  const action = plain<{ created_at: number; agent_id: string; submitted_by: string }>(row);
  const moves = visibles(action).flatMap((visible) =>
    FINE.map((grain) => ({ grain, visible, dimension: "status" as const, start: action.created_at - (action.created_at % grain), counts: new Map([[from, -1], [to, 1]]) })),
  );
  await applyChanges(statements, db, moves);
}

/** All statements are begun in one turn: where reads are synchronous they see one moment, and elsewhere `db` is a snapshot. */
export async function readCounts(statements: SumStatements, db: Pick<SqlExecutor, "all">, query: AnalyticsQuery): Promise<ActionCounts> {
  const { visibility } = query;
  const kind = visibilityKind(visibility);
  const visible = kind === "all" ? "*" : kind === "agent_id" ? `a:${(visibility as { agent_id: string }).agent_id}` : `k:${(visibility as { key_id: string }).key_id}`;
  const own = { visible_agent: kind === "agent_id" ? visible.slice(2) : null, visible_key: kind === "key_id" ? visible.slice(2) : null };
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
    work.push(db.all(statement, { visible, ...own, ...values }).then((rows) => rows.forEach((row) => each(plain<unknown>(row) as never))));
  };

  const whole = cover([since, until], WHOLE);
  for (const { grain, from, to } of whole.buckets) {
    for (const dimension of DIMENSIONS) {
      read(statements.buckets, { grain, dimension, from, to }, ({ counts }: { counts: string }) => parseCounts(counts).forEach(([value, n]) => addTotal(dimension, value, n)));
    }
  }
  for (const { from, to } of whole.rest) {
    read(statements.edge[kind], { from, to }, (row: Group) => {
      const values = valuesOf(row);
      for (const dimension of DIMENSIONS) addTotal(dimension, values[dimension], row.n);
    });
  }
  const parts = cover(query.boundaries, FINE);
  for (const { grain, from, to } of parts.buckets) {
    for (const dimension of SERIES) {
      read(statements.buckets, { grain, dimension, from, to }, ({ start, counts }: { start: number; counts: string }) => {
        const segment = segmentOf(query.boundaries, start);
        for (const [value, n] of parseCounts(counts)) addSeries(segment, dimension, value, n);
      });
    }
  }
  for (const { from, to } of parts.rest) {
    const segment = segmentOf(query.boundaries, from);
    read(statements.edge[kind], { from, to }, (row: Group) => SERIES.forEach((dimension) => addSeries(segment, dimension, valuesOf(row)[dimension], row.n)));
  }
  read(statements.tail[kind], { from: since, to: until }, (row: Omit<Group, "n"> & { created_at: number }) => {
    const values = valuesOf(row);
    for (const dimension of DIMENSIONS) addTotal(dimension, values[dimension], 1);
    for (const dimension of SERIES) addSeries(segmentOf(query.boundaries, row.created_at), dimension, values[dimension], 1);
  });
  let waits: ActionCounts["waits"] = { count: 0, p50: null, p95: null };
  read(statements.waits[kind], { from: since, to: until }, (row: ActionCounts["waits"]) => (waits = row));
  await Promise.all(work);

  const listed = (dimension: Dimension): { value: string; count: number }[] =>
    [...(totals.get(dimension) as Map<string, number>)].filter(([, count]) => count !== 0).map(([value, count]) => ({ value, count }));
  for (const counts of series) for (const dimension of SERIES) dropZeros(counts[dimension as "status" | "decision"] as Record<string, number>);
  return {
    status: listed("status"), decision: listed("decision"), tool: listed("tool"), agent: listed("agent"),
    rule: listed("rule").map(({ value, count }) => {
      const [policy, rule] = value === "" ? [null, null] : (JSON.parse(value) as [string, string | null]);
      return { policy, rule, count };
    }),
    series, waits,
  };
}

function visibilityKind(visibility: Visibility): "all" | "agent_id" | "key_id" {
  return "all" in visibility ? "all" : "agent_id" in visibility ? "agent_id" : "key_id";
}

/** A status that everything has left. */
function dropZeros(counts: Record<string, number>): void {
  for (const [value, count] of Object.entries(counts)) if (count === 0) delete counts[value];
}

/** Index of the segment that `at` lies in. */
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

/** The segments between the boundaries as whole buckets, coarsest first, and rests, none across a boundary; neighbours of one grain joined. */
export function cover(boundaries: readonly number[], grains: readonly number[]): { buckets: (Span & { grain: number })[]; rest: Span[] } {
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
