/** Reads several actions by id in one statement. */
import { sql, type Kysely } from "kysely";
import type { ActionReads, ActionRow } from "../../contract/storage.ts";
import type { SqlDialect } from "./dialect.ts";
import { toStoredActionId } from "./packed-columns.ts";
import { joinGivenRows } from "./join-each.ts";
import { ACTION_COLUMNS, type Tables } from "./table-schema.ts";
import { encodeRowsParameter, param, prepare, readRows, type SqlReader } from "./statement.ts";

/** A name that no column of a table has, so that it is unambiguous in the join. */
const ID = { wanted: "text" } as const;

export function prepareActionsById(
  db: Kysely<Tables>,
  dialect: Pick<SqlDialect, "given" | "types" | "usesGenericPlans">,
) {
  const given = dialect.given(param("ids"), ID) as never;
  const isWanted = sql<boolean>`actions.id = ${toStoredActionId(dialect.types, "given.wanted")}`;
  return {
    actionsById: prepare(
      joinGivenRows(db.selectFrom(given), "inner", "actions", isWanted, dialect).select(ACTION_COLUMNS as never),
    ),
  };
}

export function createActionsByIdReader(
  { actionsById }: ReturnType<typeof prepareActionsById>,
  db: SqlReader,
): Pick<ActionReads, "actionsById"> {
  return {
    actionsById: async (ids) => {
      const rows = [...new Set(ids)].map((wanted) => ({ wanted }));
      return readRows<ActionRow>(db, actionsById, { ids: encodeRowsParameter(Object.keys(ID), rows) });
    },
  };
}
