/** Histories of policies as SQL: the actions of an owner, newest first. */
import { sql, type Kysely } from "kysely";
import {
  MAX_PAST_REQUEST,
  type PastActionReads,
  type PastActionRow,
  type PastActionWrites,
} from "../../src/storage/index.ts";
import type { SqlDialect } from "./dialect.ts";
import { toStoredActionId } from "./packed-columns.ts";
import { joinGivenRows } from "./join-each.ts";
import { PAST_ACTION_COLUMNS, type Tables } from "./table-schema.ts";
import { param, prepare, prepareInsert, readRows, type SqlExecutor, type SqlReader } from "./statement.ts";

const COLUMNS = [
  "id",
  "agent_id",
  "tool",
  "operation",
  "status",
  "decision",
  "reason_code",
  "expires_at",
  "approved_until",
  "started_at",
  "erased_at",
] as const;

const LONGEST = sql.lit(MAX_PAST_REQUEST);

/** Assignments of an update that sets the time of a row to `at`, and moves `until` by the same difference. */
export const TIME_ASSIGNMENTS = { at: param<number>("at"), until: sql<number>`until + ${param("at")} - at` };

export function preparePastActionReads(db: Kysely<Tables>, dialect: Pick<SqlDialect, "types" | "usesGenericPlans">) {
  // Use names that no table's column has, so that they are unambiguous in the join.
  const found = db
    .selectFrom("past_actions")
    .select(["action_id as wanted", "at as wanted_at"])
    .where("policy", "=", param("policy"))
    .where("basis", "=", param("basis"))
    .where("subject", "=", param("subject"))
    .where("at", ">=", param("since"))
    .orderBy("at", "desc")
    .orderBy("action_id", "desc")
    .limit(param<number>("limit"));
  const isWanted = sql<boolean>`actions.id = ${toStoredActionId(dialect.types, "given.wanted")}`;
  return {
    pastActions: prepare(() =>
      joinGivenRows(db.selectFrom(found.as("given") as never), "inner", "actions", isWanted, dialect)
        .select([
          ...COLUMNS.map((name) => `actions.${name}`),
          "given.wanted_at as at",
          sql<string | null>`case when length(actions.request) <= ${LONGEST} then actions.request end`.as("request"),
          sql<string | null>`case when length(actions.effective) > ${LONGEST} then '' else actions.effective end`.as(
            "effective",
          ),
          sql<string | null>`case when length(actions.result) <= ${LONGEST} then actions.result end`.as("result"),
        ] as never)
        .orderBy(sql`given.wanted_at` as never, "desc")
        .orderBy(sql`given.wanted` as never, "desc"),
    ),
  };
}

export function createPastActionReader(
  { pastActions }: ReturnType<typeof preparePastActionReads>,
  db: SqlReader,
): PastActionReads {
  return {
    pastActions: ({ policy, basis, subject, since, limit }) =>
      readRows<PastActionRow>(db, pastActions, { policy, basis, subject, since, limit }),
  };
}

export function preparePastActionWrites(db: Kysely<Tables>) {
  const key = ["policy", "basis", "subject", "at", "action_id"] as const;
  const expiredKeys = db
    .selectFrom("past_actions")
    .select(key)
    .where("until", "<=", param("now"))
    .orderBy("until")
    .limit(param<number>("max"));
  const tuple = sql.join(key.map((column) => sql.ref(column)));
  return {
    insertPastAction: prepareInsert(db, "past_actions", PAST_ACTION_COLUMNS),
    movePastAction: prepare(() =>
      db
        .updateTable("past_actions")
        .set(TIME_ASSIGNMENTS)
        .where("action_id", "=", param("action_id"))
        .where("at", "<", param<number>("at")),
    ),
    removePastAction: prepare(() => db.deleteFrom("past_actions").where("action_id", "=", param("action_id"))),
    prunePastActions: prepare(() => db.deleteFrom("past_actions").where(sql<boolean>`(${tuple}) in (${expiredKeys})`)),
  };
}

export function createPastActionWriter(
  writes: ReturnType<typeof preparePastActionWrites>,
  db: SqlExecutor,
): PastActionWrites {
  return {
    insertPastAction: (row) => db.send(writes.insertPastAction, row),
    movePastAction: (action_id, at) => db.send(writes.movePastAction, { action_id, at }),
    removePastAction: async (action_id) => void (await db.run(writes.removePastAction, { action_id })),
    prunePastActions: (now, max) => db.run(writes.prunePastActions, { now, max }),
  };
}
