/** Reads several actions by id, or the votes on them, in one statement. */
import { sql, type Kysely } from "kysely";
import type { ActionReads, ActionRow, ApprovalRow } from "../../src/storage/index.ts";
import type { SqlDialect } from "./dialect.ts";
import { toStoredActionId } from "./packed-columns.ts";
import { joinGivenRows } from "./join-each.ts";
import { ACTION_COLUMNS, APPROVAL_COLUMNS, type Tables } from "./table-schema.ts";
import { encodeRowsParameter, param, prepare, readRows, type SqlReader, type SqlRow } from "./statement.ts";

/** Column name that no table has, so that it is unambiguous in the join. */
const ID = { wanted: "text" } as const;

export function prepareActionsById(
  db: Kysely<Tables>,
  dialect: Pick<SqlDialect, "given" | "types" | "usesGenericPlans">,
) {
  const given = dialect.given(param("ids"), ID) as never;
  const wanted = toStoredActionId(dialect.types, "given.wanted");
  const rowsOf = <Table extends "actions" | "approvals">(table: Table, column: string) =>
    joinGivenRows(
      db.selectFrom(given),
      "inner",
      table,
      sql<boolean>`${sql.ref(`${table}.${column}`)} = ${wanted}`,
      dialect,
    );
  return {
    actionsById: prepare(() => rowsOf("actions", "id").select(ACTION_COLUMNS as never)),
    approvalsOfActions: prepare(() => rowsOf("approvals", "action_id").select(APPROVAL_COLUMNS as never)),
  };
}

export function createActionsByIdReader(
  { actionsById, approvalsOfActions }: ReturnType<typeof prepareActionsById>,
  db: SqlReader,
  decodeApproval: (row: SqlRow) => ApprovalRow,
): Pick<ActionReads, "actionsById" | "approvalsOfActions"> {
  const encodeIds = (ids: readonly string[]) => ({
    ids: encodeRowsParameter(
      Object.keys(ID),
      [...new Set(ids)].map((wanted) => ({ wanted })),
    ),
  });
  return {
    actionsById: (ids) => readRows<ActionRow>(db, actionsById, encodeIds(ids)),
    approvalsOfActions: async (ids) => (await db.all(approvalsOfActions, encodeIds(ids))).map(decodeApproval),
  };
}
