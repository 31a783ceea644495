/** Which actions are there, of many at once, as SQL. */
import { sql, type Kysely } from "kysely";
import type { ActionReads } from "../../src/contract/storage.ts";
import type { SqlDialect } from "./dialect.ts";
import { idAs } from "./forms.ts";
import type { Tables } from "./schema.ts";
import { bindRows, param, plain, prepare, type SqlExecutor } from "./statement.ts";

const ID = { id: "text" } as const;

export function prepareActionIds(db: Kysely<Tables>, { given, packed }: Pick<SqlDialect, "given" | "packed">) {
  return {
    actionIds: prepare(
      db
        .selectFrom("actions")
        .select("actions.id")
        .innerJoin(given(param("ids"), ID) as never, (join) =>
          join.on(sql<boolean>`actions.id = ${idAs(packed, "given.id")}`),
        ),
    ),
  };
}

export function readActionIds(
  { actionIds }: ReturnType<typeof prepareActionIds>,
  db: Pick<SqlExecutor, "all">,
): Pick<ActionReads, "actionIds"> {
  return {
    actionIds: async (ids) => {
      const rows = await db.all(actionIds, {
        ids: bindRows(
          Object.keys(ID),
          ids.map((id) => ({ id })),
        ),
      });
      return rows.map((row) => plain<{ id: string }>(row).id);
    },
  };
}
