/**
 * SQL statements for sums over actions. They read and write buckets of sums, count rows that no bucket covers, and add
 * actions to the sums.
 */
import { sql, type Kysely } from "kysely";
import type { SqlDialect } from "./dialect.ts";
import { joinGivenRows, sameColumnsAsGiven } from "./join-each.ts";
import { toStoredActionId } from "./packed-columns.ts";
import type { Tables } from "./table-schema.ts";
import { param, prepare, unindexed } from "./statement.ts";

const HOUR = 3_600_000;
const DAY = 86_400_000;
/**
 * Smallest bucket size of the time series, in milliseconds. UTC offsets are multiples of 15 minutes, so these buckets
 * add up to local hours in every time zone.
 */
const QUARTER_HOUR = 900_000;
export const DIMENSIONS = ["status", "decision", "tool", "agent", "rule"] as const;
export type Dimension = (typeof DIMENSIONS)[number];
export const SERIES_DIMENSIONS: readonly Dimension[] = ["status", "decision"];
export const COARSE_GRAINS = [DAY, HOUR] as const;
export const ALL_GRAINS = [DAY, HOUR, QUARTER_HOUR] as const;
const GROUP = ["agent_id", "submitted_by", "tool", "policy", "rule", "decision", "status"] as const;
export type ActionGroup = Pick<Tables["actions"], (typeof GROUP)[number]> & { n: number };

// Avoid division, because some databases return a fraction.
const QUARTER_OF = sql<number>`(created_at - created_at % cast(${sql.lit(QUARTER_HOUR)} as bigint))`;

export const BUCKET_COLUMNS = { grain: "integer", visible: "text", dimension: "text", start: "integer" } as const;
export const COUNT_COLUMNS = { ...BUCKET_COLUMNS, counts: "text" } as const;

/** Sequence number of the last action that the sums include. */
const FOLDED = sql<number>`(select folded from sums_state where id = 1)`;

export type SumStatements = ReturnType<typeof prepareSums>;

export function prepareSums(db: Kysely<Tables>, dialect: SqlDialect) {
  return { ...prepareBuckets(db, dialect), ...prepareRowCounts(db), ...prepareFolding(db, dialect) };
}

/** Statements that read and write the buckets of sums. */
function prepareBuckets(db: Kysely<Tables>, dialect: SqlDialect) {
  const { given } = dialect;
  return {
    buckets: prepare(() =>
      db
        .selectFrom("action_sums")
        .select(["start", "counts"])
        .where("grain", "=", param("grain"))
        .where("visible", "=", param("visible"))
        .where("dimension", "=", param("dimension"))
        .where("start", ">=", param("from"))
        .where("start", "<", param("to")),
    ),
    bucketsOf: prepare(() =>
      joinGivenRows(
        db.selectFrom(given(param("buckets"), BUCKET_COLUMNS) as never),
        "inner",
        "action_sums",
        sameColumnsAsGiven("action_sums", Object.keys(BUCKET_COLUMNS)),
        dialect,
      ).select([...Object.keys(BUCKET_COLUMNS), "counts"].map((name) => `action_sums.${name}`) as never),
    ),
    putBuckets: prepare(() =>
      db
        .insertInto("action_sums")
        .columns(Object.keys(COUNT_COLUMNS) as never)
        .expression(
          db
            .selectFrom(given(param("buckets"), COUNT_COLUMNS) as never)
            .select(Object.keys(COUNT_COLUMNS) as never)
            // Without a `where`, SQLite parses "on conflict" as part of a join.
            .where(sql<boolean>`1 = 1`),
        )
        .onConflict((conflict) =>
          conflict
            .columns(["grain", "visible", "dimension", "start"])
            .doUpdateSet({ counts: sql<string>`excluded.counts` }),
        ),
    ),
  };
}

/** Statements that count rows of actions for one visibility. */
function prepareRowCounts(db: Kysely<Tables>) {
  const seen = {
    all: sql<boolean>`1 = 1`,
    // `unindexed` makes the planner use the index over the time instead of an index over agents or keys.
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
    /**
     * Counts the actions of a span that is not covered by whole buckets. Ignores actions that are not included in the
     * sums yet.
     */
    edge: byVisibility((visible) =>
      prepare(() =>
        counted
          .where("created_at", ">=", param("from"))
          .where("created_at", "<", param("to"))
          .where(sql<boolean>`decision_seq + 0 <= ${FOLDED}`)
          .where(seen[visible]),
      ),
    ),
    /**
     * Selects the actions that are not included in the sums yet. `+ 0` makes the planner use the index over the
     * sequence number instead of the index over the time.
     */
    tail: byVisibility((visible) =>
      prepare(() =>
        actions
          .select(["created_at", ...GROUP])
          .where(sql<boolean>`decision_seq > ${FOLDED}`)
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
          "approved_until",
          sql<number>`row_number() over (order by waited_ms)`.as("place"),
          sql<number>`count(*) over ()`.as("total"),
        ])
        .where("waited_ms", "is not", null)
        .where("created_at", ">=", param("from"))
        .where("created_at", "<", param("to"))
        .where(seen[visible]);
      return prepare(() =>
        db
          .with("waits", () => waits)
          .selectFrom("waits")
          .select([
            sql<number>`count(*)`.as("count"),
            sql<number>`count(*) filter (where approved_until is not null)`.as("approved"),
            sql<number | null>`min(case when place * 100 >= total * 50 then waited_ms end)`.as("p50"),
            sql<number | null>`min(case when place * 100 >= total * 95 then waited_ms end)`.as("p95"),
          ]),
      );
    }),
  };
}

/** Statements that add actions to the sums. */
function prepareFolding(db: Kysely<Tables>, dialect: SqlDialect) {
  const { given, types } = dialect;
  return {
    state: prepare(() => db.selectFrom("sums_state").select("folded").where("id", "=", sql.lit(1))),
    next: prepare(() =>
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
    fold: prepare(() =>
      db
        .selectFrom("actions")
        .select([QUARTER_OF.as("quarter"), ...GROUP, (eb) => eb.fn.countAll<number>().as("n")])
        .where("decision_seq", ">", param("folded"))
        .where("decision_seq", "<=", param("last"))
        .groupBy([QUARTER_OF, ...GROUP]),
    ),
    setFolded: prepare(() =>
      db
        .updateTable("sums_state")
        .set({ folded: param<number>("folded") })
        .where("id", "=", sql.lit(1)),
    ),
    foldedActions: prepare(() =>
      joinGivenRows(
        db.selectFrom(given(param("ids"), { id: "text" }) as never),
        "inner",
        "actions",
        sql<boolean>`actions.id = ${toStoredActionId(types, "given.id")}`,
        dialect,
      )
        .select(["actions.id", "created_at", "agent_id", "submitted_by"] as never)
        .where(sql<boolean>`decision_seq <= ${FOLDED}`),
    ),
  };
}
