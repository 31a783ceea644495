/** Rows of another form than they are looked for in: whoever writes to the file can switch its checks off. */
import { sql, type Kysely } from "kysely";
import { FORMS, type PackedSql } from "./forms.ts";
import { RIGHT_KIND } from "./kinds.ts";
import type { Tables } from "./schema.ts";
import { prepare, type SqlExecutor, type Statement } from "./statement.ts";

/** Counts them, by table. */
export type Misshapen = readonly (readonly [table: string, count: Statement])[];

export function prepareMisshapen(db: Kysely<Tables>, packed: PackedSql | null): Misshapen {
  if (packed === null) return [];
  return Object.entries(FORMS).map(([table, forms]) => {
    const right = Object.entries(forms).map(([column, form]) => sql.raw<boolean>(packed.check(form, column)));
    if (table === "actions") right.push(sql.raw(RIGHT_KIND));
    const count = db
      .selectFrom(table as "meta")
      .select((eb) => eb.fn.countAll<number>().as("n"))
      .where(sql<boolean>`not (${sql.join(right, sql` and `)})`);
    return [table, prepare(count)] as const;
  });
}

export async function misshapenRows(statements: Misshapen, db: Pick<SqlExecutor, "all">): Promise<string[]> {
  const faults: string[] = [];
  for (const [table, count] of statements) {
    const n = Number((await db.all(count, {}))[0]?.["n"]);
    if (n > 0) faults.push(`${n} rows of ${table} are not of the form that they are looked for in`);
  }
  return faults;
}
