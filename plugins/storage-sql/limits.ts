/**
 * Uses of limits as SQL. If a limit and subject have many uses, running totals contain the sums of all except the
 * newest uses. Each total covers an interval of time, and the intervals have no gaps. The amount since a time is the
 * sum of three parts: the uses from this time to the first total that begins after it, all totals from there on, and
 * the uses after the last total. Totals change in the transaction that changes their uses, so every process reads the
 * exact amount.
 */
import { sql, type Kysely } from "kysely";
import type { LimitReads, LimitSpan, LimitUseRow, LimitWrites } from "../../src/storage/index.ts";
import type { SqlDialect } from "./dialect.ts";
import { joinGivenRows, sameColumnsAsGiven } from "./join-each.ts";
import { LIMIT_USE_COLUMNS, type Tables } from "./table-schema.ts";
import {
  encodeRowsParameter,
  param,
  params,
  toPlainRow,
  prepare,
  prepareInsert,
  readRows,
  type SqlExecutor,
  type SqlReader,
  type SqlRow,
} from "./statement.ts";

/** Maximum number of uses in a new total. Uses of the same millisecond are never split, so they can exceed it. */
export const MAX_USES_PER_TOTAL = 512;
/** If a read finds more uses without a total than this, its transaction creates totals for them. */
const LOOSE = 3 * MAX_USES_PER_TOTAL;
/** Maximum number of uses of a limit and subject for which one transaction creates totals. */
const AT_ONCE = 16 * MAX_USES_PER_TOTAL;

// Add as doubles, which are exact up to 2^53 and do not overflow. In SQLite, an integer sum above 2^63 is an error.
const SUM = sql`coalesce(sum(cast(amount as double precision)), 0)`;
const USED = sql<number>`cast(case when ${SUM} > cast(9007199254740991 as double precision) then 9007199254740991 else ${SUM} end as bigint)`;
const FOREVER = sql.lit("9223372036854775807");

const KEY = ["policy", "limit_name", "subject"] as const;
type Key = Pick<LimitUseRow, (typeof KEY)[number]>;
const KEY_COLUMNS = { policy: "text", limit_name: "text", subject: "text" } as const;
const SPAN = { n: "integer", ...KEY_COLUMNS, since: "integer" } as const;
const CHANGE = { ...KEY_COLUMNS, at: "integer", uses: "integer", amount: "integer" } as const;

const isOf = (table: "limit_uses" | "limit_totals") => sameColumnsAsGiven(table, KEY);
/** Selects an aggregate over the totals that begin in the span. */
const aggregateTotals = (columns: string) =>
  sql.raw<number>(
    `(select ${columns} from limit_totals as t where ${KEY.map((name) => `t.${name} = given.${name}`).join(" and ")} and t.from_at >= given.since)`,
  );

export function prepareLimitReads(db: Kysely<Tables>, dialect: Pick<SqlDialect, "given" | "usesGenericPlans">) {
  const spans = () => db.selectFrom(dialect.given(param("spans"), SPAN) as never);
  const uses = (between: ReturnType<typeof sql<boolean>>) =>
    joinGivenRows(spans(), "inner", "limit_uses", sql<boolean>`${isOf("limit_uses")} and ${between}`, dialect).select([
      sql<number>`given.n`.as("n"),
      sql<number>`1`.as("uses"),
      sql<number>`limit_uses.amount`.as("amount"),
      sql<number>`1`.as("loose"),
      sql<number>`0`.as("to_at"),
    ] as never);
  const totals = joinGivenRows(
    spans(),
    "inner",
    "limit_totals",
    sql<boolean>`${isOf("limit_totals")} and limit_totals.from_at >= given.since`,
    dialect,
  ).select([
    sql<number>`given.n`.as("n"),
    sql<number>`limit_totals.uses`.as("uses"),
    sql<number>`limit_totals.amount`.as("amount"),
    sql<number>`0`.as("loose"),
    sql<number>`limit_totals.to_at`.as("to_at"),
  ] as never);
  const first = sql<number>`coalesce(${aggregateTotals("min(t.from_at)")}, cast(${FOREVER} as bigint))`;
  const parts = totals
    .unionAll(uses(sql`limit_uses.at >= given.since and limit_uses.at < ${first}`))
    .unionAll(uses(sql`limit_uses.at >= ${aggregateTotals("max(t.to_at)")}`));
  return {
    limitsUsed: prepare(() =>
      db
        .selectFrom(parts.as("parts" as never) as never)
        .select([
          "n",
          sql<number>`cast(sum(uses) as bigint)`.as("count"),
          USED.as("sum"),
          sql<number>`cast(sum(loose) as bigint)`.as("loose"),
          sql<number>`cast(max(to_at) as bigint)`.as("end"),
        ] as never)
        .groupBy("n" as never),
    ),
    limitUses: prepare(() =>
      KEY.reduce(
        (query, name) => query.where(name, "=", param(name)),
        db.selectFrom("limit_uses").select(LIMIT_USE_COLUMNS),
      )
        .where("at", ">=", param("since"))
        .orderBy("at", "desc")
        .orderBy("action_id", "desc")
        .limit(param<number>("limit")),
    ),
    /** Finds totals that differ from the sum of their uses, and gaps between totals. For the audit. */
    faultyTotals: prepare(() =>
      db
        .selectFrom("limit_totals")
        .select(KEY)
        .where(
          sql.raw<boolean>(`to_at <= from_at
            or uses <> (select count(*) from limit_uses as u where ${sameKey("u")} and u.at >= limit_totals.from_at and u.at < limit_totals.to_at)
            or cast(amount as numeric) <> (select coalesce(sum(u.amount), 0) from limit_uses as u where ${sameKey("u")} and u.at >= limit_totals.from_at and u.at < limit_totals.to_at)
            or from_at <> coalesce((select max(t.to_at) from limit_totals as t where ${sameKey("t")} and t.from_at < limit_totals.from_at), from_at)`),
        ),
    ),
  };
}

const sameKey = (other: string): string => KEY.map((name) => `${other}.${name} = limit_totals.${name}`).join(" and ");

interface MeasuredUsage {
  count: number;
  sum: number;
  /** Number of uses that no total covers. */
  loose: number;
  /** End of the last total that begins in the span; 0 if none does. */
  end: number;
}

async function readUsed(
  { limitsUsed }: Pick<ReturnType<typeof prepareLimitReads>, "limitsUsed">,
  db: SqlReader,
  spans: readonly LimitSpan[],
): Promise<MeasuredUsage[]> {
  const given = encodeRowsParameter(
    Object.keys(SPAN),
    spans.map((span, n) => ({ ...span, n })),
  );
  const rows = await readRows<MeasuredUsage & { n: number }>(db, limitsUsed, { spans: given });
  const used = new Map(rows.map(({ n, ...usage }) => [Number(n), usage]));
  return spans.map((_, n) => used.get(n) ?? { count: 0, sum: 0, loose: 0, end: 0 });
}

export function createLimitReader(
  reads: Pick<ReturnType<typeof prepareLimitReads>, "limitsUsed" | "limitUses">,
  db: SqlReader,
): LimitReads {
  return {
    limitUses: (span, limit) => readRows<LimitUseRow>(db, reads.limitUses, { ...span, limit }),
    limitsUsed: async (spans) => (await readUsed(reads, db, spans)).map(({ count, sum }) => ({ count, sum })),
    async limitUsed(policy, limit_name, subject, since) {
      const [{ count, sum } = { count: 0, sum: 0 }] = await readUsed(reads, db, [
        { policy, limit_name, subject, since },
      ]);
      return { count, sum };
    },
  };
}

/** Returns the faults of running totals, for the audit. */
export async function findLimitTotalFaults(
  reads: ReturnType<typeof prepareLimitReads>,
  db: SqlReader,
): Promise<string[]> {
  return (await readRows<Key>(db, reads.faultyTotals, {})).map(
    ({ policy, limit_name, subject }) =>
      `a total of the limit "${limit_name}" of "${policy}" for "${subject}" differs from the sum of its uses`,
  );
}

export function prepareLimitWrites(db: Kysely<Tables>, dialect: Pick<SqlDialect, "given" | "usesGenericPlans">) {
  const keys = [...KEY, "at", "action_id"] as const;
  const past = db
    .selectFrom("limit_uses")
    .select(keys)
    .where("until", "<=", param("now"))
    .orderBy("until")
    .limit(param<number>("max"));
  const tuple = sql.join(keys.map((column) => sql.ref(column)));
  const removed = [...KEY, "at", "amount"] as const;
  const key = Object.entries(params<Record<string, never>>(KEY));
  const ofKey = <Query extends { where(column: never, compare: "=", value: never): Query }>(query: Query): Query =>
    key.reduce((each, [name, value]) => each.where(name as never, "=", value), query);
  const newest = sql.raw<number>(
    `(select max(t.from_at) from limit_totals as t where ${KEY.map((name) => `t.${name} = given.${name}`).join(" and ")} and t.from_at <= given.at)`,
  );
  const changes = joinGivenRows(
    db.selectFrom(dialect.given(param("changes"), CHANGE) as never),
    "inner",
    "limit_totals",
    sql<boolean>`${isOf("limit_totals")} and limit_totals.from_at = ${newest} and limit_totals.to_at > given.at`,
    dialect,
  )
    .select([
      ...[...KEY, "from_at"].map((name) => `limit_totals.${name}`),
      sql<number>`cast(sum(given.uses) as bigint)`.as("uses"),
      sql<number>`cast(sum(given.amount) as bigint)`.as("amount"),
    ] as never)
    .groupBy([...KEY, "from_at"].map((name) => `limit_totals.${name}`) as never);
  return {
    insertLimitUse: prepareInsert(db, "limit_uses", LIMIT_USE_COLUMNS),
    releaseLimitUses: prepare(() =>
      db.deleteFrom("limit_uses").where("action_id", "=", param("action_id")).returning(removed),
    ),
    pruneLimitUses: prepare(() =>
      db
        .deleteFrom("limit_uses")
        .where(sql<boolean>`(${tuple}) in (${past})`)
        .returning(removed),
    ),
    changeTotals: prepare(() =>
      db
        .updateTable("limit_totals")
        .from(changes.as("change" as never) as never)
        .set({
          uses: sql<number>`limit_totals.uses + change.uses`,
          amount: sql<number>`limit_totals.amount + change.amount`,
        } as never)
        .where(
          sql.raw<boolean>([...KEY, "from_at"].map((name) => `limit_totals.${name} = change.${name}`).join(" and ")),
        ),
    ),
    endOfTotals: prepare(() => ofKey(db.selectFrom("limit_totals").select((eb) => eb.fn.max("to_at").as("at")))),
    usesFrom: prepare(() =>
      ofKey(db.selectFrom("limit_uses").select(["at", "amount"]))
        .where("at", ">=", param("from"))
        .orderBy("at")
        .limit(param<number>("limit")),
    ),
    insertTotal: prepareInsert(db, "limit_totals", [...KEY, "from_at", "to_at", "uses", "amount"]),
    // Delete only the oldest total, because the deletion of any other total would leave a gap.
    dropEmptyTotal: prepare(() =>
      ofKey(db.deleteFrom("limit_totals"))
        .where("uses", "=", sql.lit(0))
        .where(
          sql.raw<boolean>(
            `not exists (select 1 from limit_totals as t where ${sameKey("t")} and t.from_at < limit_totals.from_at)`,
          ),
        ),
    ),
  };
}

/** The reads and writes of one transaction. The caller calls `apply` before the commit. */
export interface LimitAccess {
  readonly methods: LimitReads & LimitWrites;
  apply(): Promise<void>;
}

type Change = Key & { at: number; uses: number; amount: number };

export function createLimitAccess(
  reads: Pick<ReturnType<typeof prepareLimitReads>, "limitsUsed" | "limitUses">,
  writes: ReturnType<typeof prepareLimitWrites>,
  db: SqlExecutor,
): LimitAccess {
  /** Added and removed uses that are not included in the totals yet. */
  let changes: Change[] = [];
  /** Limits and subjects for which a read found more than `LOOSE` uses without a total. */
  const long = new Map<string, Key>();

  async function changeTotals(): Promise<void> {
    if (changes.length === 0) return;
    const given = encodeRowsParameter(Object.keys(CHANGE), changes);
    changes = [];
    await db.send(writes.changeTotals, { changes: given });
  }

  function remove(rows: readonly SqlRow[]): Change[] {
    const removed = rows.map((row) => {
      const { amount, ...use } = toPlainRow<Key & { at: number; amount: number }>(row);
      return { ...use, uses: -1, amount: -amount };
    });
    changes.push(...removed);
    return removed;
  }

  async function makeTotals(key: Key): Promise<void> {
    const last = (await db.all(writes.endOfTotals, key))[0]?.["at"] ?? null;
    const values = { ...key, from: last ?? 0, limit: AT_ONCE };
    const uses = await readRows<{ at: number; amount: number }>(db, writes.usesFrom, values);
    for (const total of computeLimitTotals(uses, last === null ? null : Number(last)))
      await db.send(writes.insertTotal, { ...key, ...total });
  }

  async function limitsUsed(spans: readonly LimitSpan[]): Promise<{ count: number; sum: number }[]> {
    let used = await readUsed(reads, db, spans);
    // Uses are usually added after the last total, so that the totals are exact without the changes.
    if (changes.some(({ at, uses }) => uses < 0 || used.some(({ end }) => at < end))) {
      await changeTotals();
      used = await readUsed(reads, db, spans);
    }
    used.forEach(({ loose }, n) => {
      const { policy, limit_name, subject } = spans[n] as Key;
      if (loose > LOOSE) long.set(JSON.stringify([policy, limit_name, subject]), { policy, limit_name, subject });
    });
    return used.map(({ count, sum }) => ({ count, sum }));
  }

  return {
    methods: {
      ...createLimitReader(reads, db),
      limitsUsed,
      async limitUsed(policy, limit_name, subject, since) {
        const [used] = await limitsUsed([{ policy, limit_name, subject, since }]);
        return used ?? { count: 0, sum: 0 };
      },
      async insertLimitUse(row) {
        await db.send(writes.insertLimitUse, row);
        const { policy, limit_name, subject, at, amount } = row;
        changes.push({ policy, limit_name, subject, at, uses: 1, amount });
      },
      async releaseLimitUses(action_id) {
        remove(await db.all(writes.releaseLimitUses, { action_id }));
      },
      async pruneLimitUses(now, max) {
        const removed = remove(await db.all(writes.pruneLimitUses, { now, max }));
        if (removed.length === 0) return 0;
        await changeTotals();
        const keys = new Map(removed.map((use) => [JSON.stringify(KEY.map((name) => use[name])), use]));
        for (const key of keys.values()) await db.send(writes.dropEmptyTotal, key);
        return removed.length;
      },
    },
    async apply() {
      await changeTotals();
      for (const key of long.values()) await makeTotals(key);
      long.clear();
    },
  };
}

/**
 * Computes totals for the oldest of these uses, and leaves the newest uses without a total. Uses of the same
 * millisecond are in the same total. No total exceeds 2^53 - 1.
 * @param uses the uses in order of time
 * @param from the start of the first total; null to start at the first use
 * @example
 * computeLimitTotals(uses, null)[0] // { from_at: 1735689600000, to_at: 1735689601250, uses: 512, amount: 51200000000 }
 */
export function computeLimitTotals(
  uses: readonly { at: number; amount: number }[],
  from: number | null,
): { from_at: number; to_at: number; uses: number; amount: number }[] {
  const totals: { from_at: number; to_at: number; uses: number; amount: number }[] = [];
  let from_at = from ?? uses[0]?.at ?? 0;
  let [start, amount] = [0, 0];
  for (let end = 0; end < uses.length - MAX_USES_PER_TOTAL;) {
    // Include all uses of the next millisecond.
    const { at } = uses[end] as { at: number };
    let [next, sum] = [end, 0];
    while (next < uses.length && uses[next]?.at === at) sum += (uses[next++] as { amount: number }).amount;
    const isFull = end > start && (next - start > MAX_USES_PER_TOTAL || amount + sum > Number.MAX_SAFE_INTEGER);
    if (isFull) {
      totals.push({ from_at, to_at: at, uses: end - start, amount });
      [from_at, start, amount] = [at, end, 0];
    }
    // The uses of this millisecond alone exceed the largest safe integer, so no total can contain them. Leave them and
    // all later uses unaggregated.
    if (sum > Number.MAX_SAFE_INTEGER) break;
    amount += sum;
    end = next;
  }
  return totals;
}
