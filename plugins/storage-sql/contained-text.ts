/** The condition of `ContainedText`, which no index supports. */
import { type RawBuilder, sql } from "kysely";
import { type ContainedText, SEARCHED_COLUMNS } from "../../src/storage/index.ts";
import type { SqlDialect } from "./dialect.ts";
import { param } from "./statement.ts";

export type ContainsDialect = Pick<SqlDialect, "ignoreCaseLike">;

/** Columns that can be long. */
const REQUESTS = { request: "contained", effective: "contained_before_salt" } as const;
/**
 * A request with more characters than this counts as a match without a comparison. The time of a comparison grows with
 * the product of both lengths, and SQLite blocks the process meanwhile.
 */
const MAX_COMPARED = 2048;

/** Matches an edit by the policies: its time has 13 digits, and members are sorted. */
const CHANGED_BY_POLICIES = `{"at":${"_".repeat(13)},"by":"policies",%`;
/** `hasEarlierComments`, or questions, whose column contains salts. Only for actions with a quorum. */
const HAS_OTHER_TEXT = sql`(questions is not null or plan_id is not null
  or effective not like ${sql.lit(CHANGED_BY_POLICIES)} or reason_code = 'MORE_APPROVALS_NEEDED' or (status = 'denied' and rejection_until is null))`;

/** Returns the condition. Its parameters are those of `containsValues`. */
export function containsText({ ignoreCaseLike }: ContainsDialect): RawBuilder<boolean> {
  const like = (column: string, pattern: string) =>
    sql`${sql.ref(column)} ${sql.raw(ignoreCaseLike)} ${param(pattern)}`;
  const likeUnlessLong = (column: string, pattern: string) =>
    sql`case when length(${sql.ref(column)}) > ${sql.lit(MAX_COMPARED)} then true else ${like(column, pattern)} end`;
  const conditions = [
    ...Object.entries(REQUESTS).map(([column, pattern]) => likeUnlessLong(column, pattern)),
    ...SEARCHED_COLUMNS.map((column) => like(column, "contained")),
    sql`quorum is not null and (${HAS_OTHER_TEXT} or exists (select 1 from approvals
      where approvals.action_id = actions.id
      and (approvals.principal like 'key:%' or ${likeUnlessLong("approvals.reason", "contained")})))`,
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
