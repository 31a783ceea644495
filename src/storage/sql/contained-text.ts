/** The condition of `ContainedText`, which no index supports. */
import { type RawBuilder, sql } from "kysely";
import type { ContainedText } from "../../contract/storage.ts";
import type { SqlDialect } from "./dialect.ts";
import { param } from "./statement.ts";

export type ContainsDialect = Pick<SqlDialect, "ignoreCaseLike">;

/** Columns that can be long. */
const REQUESTS = { request: "contained", effective: "contained_before_salt" } as const;
const NAMES = ["agent_id", "tool", "operation"] as const;
/**
 * A request with more characters than this counts as a match without a comparison. The time of a comparison grows with
 * the product of both lengths, and SQLite blocks the process meanwhile.
 */
const MAX_COMPARED = 2048;

/** Returns the condition. Its parameters are those of `containsValues`. */
export function containsText({ ignoreCaseLike }: ContainsDialect): RawBuilder<boolean> {
  const like = (column: string, pattern: string) =>
    sql`${sql.ref(column)} ${sql.raw(ignoreCaseLike)} ${param(pattern)}`;
  const conditions = [
    ...Object.entries(REQUESTS).map(
      ([column, pattern]) =>
        sql`case when length(${sql.ref(column)}) > ${sql.lit(MAX_COMPARED)} then true else ${like(column, pattern)} end`,
    ),
    ...NAMES.map((column) => like(column, "contained")),
  ];
  return sql<boolean>`(${sql.join(conditions, sql` or `)} or id between ${param("first_id", "uuid")} and ${param("last_id", "uuid")})`;
}

/** Returns the values of the condition's parameters. */
export function containsValues(contains: ContainedText | undefined): Record<string, string> {
  if (contains === undefined) return {};
  const { text, id_prefix } = contains;
  const completed = (digit: string): string =>
    id_prefix + "########-####-####-####-############".slice(id_prefix.length).replaceAll("#", digit);
  const [first_id, last_id] = id_prefix === "" ? ["", ""] : [completed("0"), completed("f")];
  const contained = `%${text.replace(/[%\\]/g, "_")}%`;
  // Members are sorted, so the salt is last.
  return { contained, contained_before_salt: `${contained},"salt":%`, first_id, last_id };
}
