/** What was used of limits, as SQL. */
import { sql, type Kysely } from "kysely";
import type { LimitReads } from "../../contract/storage.ts";
import type { SqlDialect } from "./dialect.ts";
import { joinEach } from "./join-each.ts";
import type { Tables } from "./schema.ts";
import { bindRows, param, prepare, type SqlExecutor } from "./statement.ts";

// As doubles, which are exact up to 2^53 and have room beyond: SQLite fails a sum of integers that goes beyond 2^63.
const USED = sql<number>`cast(case when coalesce(sum(cast(amount as double precision)), 0) > 9007199254740991 then 9007199254740991 else coalesce(sum(cast(amount as double precision)), 0) end as bigint)`;

const SPAN = { n: "integer", policy: "text", limit_name: "text", subject: "text", since: "integer" } as const;

export function prepareLimitReads(db: Kysely<Tables>, dialect: Pick<SqlDialect, "given" | "expectsRows">) {
  const spans = db.selectFrom(dialect.given(param("spans"), SPAN) as never);
  const isOfSpan = sql<boolean>`limit_uses.policy = given.policy and limit_uses.limit_name = given.limit_name and limit_uses.subject = given.subject and limit_uses.at >= given.since`;
  return {
    limitsUsed: prepare(
      joinEach(spans, "left", "limit_uses", isOfSpan, dialect)
        .select([sql<number>`given.n`.as("n"), sql<number>`count(limit_uses.at)`.as("count"), USED.as("sum")] as never)
        .groupBy(sql`given.n`),
    ),
    limitUsed: prepare(
      db
        .selectFrom("limit_uses")
        .select([(eb) => eb.fn.countAll<number>().as("count"), USED.as("sum")])
        .where("policy", "=", param("policy"))
        .where("limit_name", "=", param("limit_name"))
        .where("subject", "=", param("subject"))
        .where("at", ">=", param("since")),
    ),
  };
}

export function readLimits(reads: ReturnType<typeof prepareLimitReads>, db: Pick<SqlExecutor, "all">): LimitReads {
  return {
    async limitsUsed(spans) {
      const rows = await db.all(reads.limitsUsed, {
        spans: bindRows(
          Object.keys(SPAN),
          spans.map((span, n) => ({ ...span, n })),
        ),
      });
      const used = new Map(rows.map((row) => [Number(row["n"]), row]));
      return spans.map((_, n) => ({
        count: Number(used.get(n)?.["count"] ?? 0),
        sum: Number(used.get(n)?.["sum"] ?? 0),
      }));
    },
    async limitUsed(policy, limit_name, subject, since) {
      const [row] = await db.all(reads.limitUsed, { policy, limit_name, subject, since });
      return { count: Number(row?.["count"] ?? 0), sum: Number(row?.["sum"] ?? 0) };
    },
  };
}
