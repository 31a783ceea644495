/**
 * Maintains sums over actions, so that analytics do not read every row. Actions are folded in ascending order of
 * decision_seq, and `folded` is the last folded one. Actions that are not folded yet, and parts that do not align with a
 * bucket, are counted from rows, so the answer is always exact. Sums are additive over decision_seq, so clock changes do not
 * matter.
 */
import { sql, type Kysely } from "kysely";
import type { SqlDialect } from "./dialect.ts";
import { joinGivenRows, sameColumnsAsGiven } from "./join-each.ts";
import { toStoredActionId } from "./forms.ts";
import type { Tables } from "./table-schema.ts";
import { bindRows, param, toPlainRow, prepare, type SqlExecutor, type SqlRow } from "./statement.ts";

export const HOUR = 3_600_000;
export const DAY = 86_400_000;
/** Hours of every time zone start at a multiple of this interval. Used only for the time series. Milliseconds. */
export const QUARTER_HOUR = 900_000;
export const DIMENSIONS = ["status", "decision", "tool", "agent", "rule"] as const;
export type Dimension = (typeof DIMENSIONS)[number];
export const SERIES_DIMENSIONS: readonly Dimension[] = ["status", "decision"];
export const COARSE_GRAINS = [DAY, HOUR] as const;
export const ALL_GRAINS = [DAY, HOUR, QUARTER_HOUR] as const;
const grainsOf = (dimension: Dimension): readonly number[] =>
  SERIES_DIMENSIONS.includes(dimension) ? ALL_GRAINS : COARSE_GRAINS;

const GROUP = ["agent_id", "submitted_by", "tool", "policy", "rule", "decision", "status"] as const;
export type Group = Pick<Tables["actions"], (typeof GROUP)[number]> & { n: number };

// Avoid division, because some databases return a fraction.
const QUARTER_OF = sql<number>`(created_at - created_at % ${sql.lit(QUARTER_HOUR)})`;

const BUCKET = { grain: "integer", visible: "text", dimension: "text", start: "integer" } as const;
const COUNTED = { ...BUCKET, counts: "text" } as const;
const columnsOf = (given: object): string[] => Object.keys(given);

export type SumStatements = ReturnType<typeof prepareSums>;

export function prepareSums(db: Kysely<Tables>, dialect: SqlDialect) {
  const { given, packed, unindexed } = dialect;
  const folded = sql<number>`(select folded from sums_state where id = 1)`;
  const seen = {
    all: sql<boolean>`1 = 1`,
    // Stops the planner from using the agent or key index; the time range needs its own index.
    agent_id: sql<boolean>`${unindexed("agent_id")} = ${param("visible_agent")}`,
    key_id: sql<boolean>`${unindexed("submitted_by")} = ${param("visible_key", "uuid")}`,
  };
  const byVisibility = <T>(make: (visible: keyof typeof seen) => T): Record<keyof typeof seen, T> => ({
    all: make("all"),
    agent_id: make("agent_id"),
    key_id: make("key_id"),
  });
  const actions = db.selectFrom("actions");
  const counted = actions.select([...GROUP, (eb) => eb.fn.countAll<number>().as("n")]).groupBy(GROUP);
  return {
    buckets: prepare(
      db
        .selectFrom("action_sums")
        .select(["start", "counts"])
        .where("grain", "=", param("grain"))
        .where("visible", "=", param("visible"))
        .where("dimension", "=", param("dimension"))
        .where("start", ">=", param("from"))
        .where("start", "<", param("to")),
    ),
    bucketsOf: prepare(
      joinGivenRows(
        db.selectFrom(given(param("buckets"), BUCKET) as never),
        "inner",
        "action_sums",
        sameColumnsAsGiven("action_sums", columnsOf(BUCKET)),
        dialect,
      ).select([...columnsOf(BUCKET), "counts"].map((name) => `action_sums.${name}`) as never),
    ),
    /** Selects folded rows of a span that does not fill a bucket. */
    edge: byVisibility((visible) =>
      prepare(
        counted
          .where("created_at", ">=", param("from"))
          .where("created_at", "<", param("to"))
          .where(sql<boolean>`decision_seq + 0 <= ${folded}`)
          .where(seen[visible]),
      ),
    ),
    /** Selects rows that are not folded yet. `+ 0` makes the planner use the sequence number and not the time. */
    tail: byVisibility((visible) =>
      prepare(
        actions
          .select(["created_at", ...GROUP])
          .where(sql<boolean>`decision_seq > ${folded}`)
          .where(sql<boolean>`created_at + 0 >= ${param("from")}`)
          .where(sql<boolean>`created_at + 0 < ${param("to")}`)
          .where(seen[visible]),
      ),
    ),
    waits: byVisibility((visible) => {
      const waits = db
        .selectFrom("actions")
        .select([
          "waited_ms",
          sql<number>`row_number() over (order by waited_ms)`.as("place"),
          sql<number>`count(*) over ()`.as("total"),
        ])
        .where("waited_ms", "is not", null)
        .where("created_at", ">=", param("from"))
        .where("created_at", "<", param("to"))
        .where(seen[visible]);
      return prepare(
        db
          .with("waits", () => waits)
          .selectFrom("waits")
          .select([
            sql<number>`count(*)`.as("count"),
            sql<number | null>`min(case when place * 100 >= total * 50 then waited_ms end)`.as("p50"),
            sql<number | null>`min(case when place * 100 >= total * 95 then waited_ms end)`.as("p95"),
          ]),
      );
    }),
    state: prepare(db.selectFrom("sums_state").select("folded").where("id", "=", sql.lit(1))),
    next: prepare(
      db
        .selectFrom(
          db
            .selectFrom("actions")
            .select("decision_seq")
            .where("decision_seq", ">", param("folded"))
            .orderBy("decision_seq")
            .limit(param<number>("max"))
            .as("next"),
        )
        .select([(eb) => eb.fn.max("decision_seq").as("last"), (eb) => eb.fn.countAll<number>().as("n")]),
    ),
    fold: prepare(
      actions
        .select([QUARTER_OF.as("quarter"), ...GROUP, (eb) => eb.fn.countAll<number>().as("n")])
        .where("decision_seq", ">", param("folded"))
        .where("decision_seq", "<=", param("last"))
        .groupBy([QUARTER_OF, ...GROUP]),
    ),
    putBuckets: prepare(
      db
        .insertInto("action_sums")
        .columns(columnsOf(COUNTED) as never)
        .expression(
          db
            .selectFrom(given(param("buckets"), COUNTED) as never)
            .select(columnsOf(COUNTED) as never)
            // Without a `where`, SQLite parses "on conflict" as part of a join.
            .where(sql<boolean>`1 = 1`),
        )
        .onConflict((conflict) =>
          conflict
            .columns(["grain", "visible", "dimension", "start"])
            .doUpdateSet({ counts: sql<string>`excluded.counts` }),
        ),
    ),
    setFolded: prepare(
      db
        .updateTable("sums_state")
        .set({ folded: param<number>("folded") })
        .where("id", "=", sql.lit(1)),
    ),
    foldedActions: prepare(
      joinGivenRows(
        db.selectFrom(given(param("ids"), { id: "text" }) as never),
        "inner",
        "actions",
        sql<boolean>`actions.id = ${toStoredActionId(packed, "given.id")}`,
        dialect,
      )
        .select(["actions.id", "created_at", "agent_id", "submitted_by"] as never)
        .where(sql<boolean>`decision_seq <= ${folded}`),
    ),
  };
}

export const dimensionValues = (row: Omit<Group, "n">): Record<Dimension, string> => ({
  status: row.status,
  decision: row.decision,
  tool: row.tool,
  agent: row.agent_id,
  rule: row.policy === null ? "" : JSON.stringify([row.policy, row.rule]),
});

/** The visibilities whose sums include an action. */
const visibles = (row: { agent_id: string; submitted_by: string }): string[] => [
  "*",
  `a:${row.agent_id}`,
  `k:${row.submitted_by}`,
];

/** Folds up to `max` actions. Resolves to the number of folded actions. */
export async function foldSums(statements: SumStatements, db: SqlExecutor, max: number): Promise<number> {
  const { folded } = toPlainRow<{ folded: number }>((await db.all(statements.state, {}))[0] as SqlRow);
  const { last, n } = toPlainRow<{ last: number | null; n: number }>(
    (await db.all(statements.next, { folded, max }))[0] as SqlRow,
  );
  if (last === null) return 0;
  const changes = bucketChanges();
  for (const row of await db.all(statements.fold, { folded, last })) {
    const group = toPlainRow<Group & { quarter: number }>(row);
    const values = dimensionValues(group);
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
    /** @param at the bucket; `start` can be any time inside it */
    add(at: Omit<Bucket, "counts">, value: string, n: number): void {
      const place = { ...at, start: at.start - (at.start % at.grain) };
      const key = keyOf(place);
      let bucket = changes.get(key);
      if (bucket === undefined) changes.set(key, (bucket = { ...place, counts: new Map() }));
      count(bucket.counts, value, n);
    },
    async apply(statements: SumStatements, db: SqlExecutor): Promise<void> {
      const buckets = [...changes.values()];
      if (buckets.length === 0) return;
      const stored = new Map<string, string>();
      for (const row of await db.all(statements.bucketsOf, { buckets: bindRows(columnsOf(BUCKET), buckets) })) {
        const { counts, ...bucket } = toPlainRow<Omit<Bucket, "counts"> & { counts: string }>(row);
        stored.set(keyOf(bucket), counts);
      }
      const rows = buckets.map((bucket) => {
        const text = stored.get(keyOf(bucket));
        const counts = new Map(text === undefined ? [] : parseCounts(text));
        for (const [value, n] of bucket.counts) count(counts, value, n);
        return { ...bucket, counts: JSON.stringify(Object.fromEntries(counts)) };
      });
      await db.run(statements.putBuckets, { buckets: bindRows(columnsOf(COUNTED), rows) });
    },
  };
}

/** Collects the status changes of one transaction, and updates the sums of folded actions once at its end. */
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
      const ids = bindRows(
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
