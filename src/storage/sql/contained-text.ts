/** The condition of `ContainedText`, which no index supports. */
import { type RawBuilder, sql } from "kysely";
import type { ContainedText } from "../../contract/storage.ts";
import type { SqlDialect } from "./dialect.ts";
import { param } from "./statement.ts";

export type ContainsDialect = Pick<SqlDialect, "ignoreCaseLike">;

const COLUMNS = {
  request: "contained",
  effective: "contained_before_salt",
  agent_id: "contained",
  tool: "contained",
  operation: "contained",
} as const;

/** Returns the condition. Its parameters are those of `containsValues`. */
export function containsText({ ignoreCaseLike }: ContainsDialect): RawBuilder<boolean> {
  const likes = Object.entries(COLUMNS).map(
    ([column, pattern]) => sql`${sql.ref(column)} ${sql.raw(ignoreCaseLike)} ${param(pattern)}`,
  );
  return sql<boolean>`(${sql.join(likes, sql` or `)} or id between ${param("first_id", "uuid")} and ${param("last_id", "uuid")})`;
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
