/** SQL statements for idempotency keys. */
import { sql, type Kysely } from "kysely";
import type { ActionReads, ActionWrites, IdempotencyRow } from "../../src/storage/index.ts";
import type { SqlDialect } from "./dialect.ts";
import { joinGivenRows, sameColumnsAsGiven } from "./join-each.ts";
import { IDEMPOTENCY_COLUMNS, type Tables } from "./table-schema.ts";
import {
  encodeRowsParameter,
  param,
  prepare,
  prepareInsert,
  readRows,
  type SqlExecutor,
  type SqlReader,
  type Statement,
} from "./statement.ts";

type Reads = ReturnType<typeof prepareIdempotencyReads>;
type Writes = ReturnType<typeof prepareIdempotencyWrites>;

const NAME = { key_id: "text", route: "text", idempotency_key: "text" } as const;

export function prepareIdempotencyReads(db: Kysely<Tables>, dialect: Pick<SqlDialect, "given" | "usesGenericPlans">) {
  const rows = db.selectFrom("idempotency").select(IDEMPOTENCY_COLUMNS);
  const names = db.selectFrom(dialect.given(param("names"), NAME) as never);
  const isOfName = sameColumnsAsGiven("idempotency", Object.keys(NAME));
  return {
    idempotency: prepare(() =>
      rows
        .where("key_id", "=", param("key_id"))
        .where("route", "=", param("route"))
        .where("idempotency_key", "=", param("idempotency_key")),
    ),
    idempotencies: prepare(() =>
      joinGivenRows(names, "inner", "idempotency", isOfName, dialect).select(
        IDEMPOTENCY_COLUMNS.map((column) => `idempotency.${column}`) as never,
      ),
    ),
    idempotencyBefore: prepare(() =>
      rows
        .where("created_at", "<", param("before"))
        .where(
          sql<boolean>`(created_at, key_id, route, idempotency_key) > (${param("created_at")}, ${param("key_id")}, ${param("route")}, ${param("idempotency_key")})`,
        )
        .orderBy("created_at")
        .orderBy("key_id")
        .orderBy("route")
        .orderBy("idempotency_key")
        .limit(param<number>("limit")),
    ),
  };
}

export function prepareIdempotencyWrites(db: Kysely<Tables>) {
  return {
    insertIdempotency: prepareInsert(db, "idempotency", IDEMPOTENCY_COLUMNS),
    deleteIdempotency: prepare(() =>
      db
        .deleteFrom("idempotency")
        .where("key_id", "=", param("key_id"))
        .where("route", "=", param("route"))
        .where("idempotency_key", "=", param("idempotency_key")),
    ),
  };
}

export function createIdempotencyReader(
  reads: Reads,
  db: SqlReader,
): Pick<ActionReads, "idempotency" | "idempotencies" | "idempotencyBefore"> {
  const many = (statement: Statement, values: object): Promise<IdempotencyRow[]> => readRows(db, statement, values);
  return {
    idempotency: async (key_id, route, idempotency_key) =>
      (await many(reads.idempotency, { key_id, route, idempotency_key }))[0] ?? null,
    idempotencies: (names) => many(reads.idempotencies, { names: encodeRowsParameter(Object.keys(NAME), names) }),
    idempotencyBefore: (before, after, limit) => many(reads.idempotencyBefore, { ...after, before, limit }),
  };
}

export function createIdempotencyWriter(
  writes: Writes,
  db: SqlExecutor,
): Pick<ActionWrites, "insertIdempotency" | "deleteIdempotency"> {
  return {
    async insertIdempotency(row) {
      await db.send(writes.insertIdempotency, row);
    },
    deleteIdempotency: async (key_id, route, idempotency_key) =>
      (await db.run(writes.deleteIdempotency, { key_id, route, idempotency_key })) === 1,
  };
}
