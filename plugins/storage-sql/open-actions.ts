/** Finds the open actions of an agent or a key, with two indexes that contain only open actions. */
import { sql, type Kysely } from "kysely";
import { foldName } from "../../src/storage/index.ts";
import { IS_OPEN, FOLDED_AGENT_NAME, OPEN_UNTIL } from "./migrations/initial.ts";
import { ACTION_COLUMNS, type Tables } from "./table-schema.ts";
import { param, prepare, readRows, type SqlReader, type Statement } from "./statement.ts";

export function prepareOpenActions(db: Kysely<Tables>): Record<"agent_id" | "authority" | "key_id", Statement> {
  const open = db
    .selectFrom("actions")
    .select(ACTION_COLUMNS)
    .where(sql.raw<boolean>(IS_OPEN))
    .where(sql<boolean>`${sql.raw(OPEN_UNTIL)} > ${param("now")}`)
    .limit(param<number>("limit"));
  const ofAgent = open.where(sql<boolean>`${sql.raw(FOLDED_AGENT_NAME)} = ${param("owner")}`);
  return {
    agent_id: prepare(() => ofAgent),
    authority: prepare(() =>
      ofAgent.where(sql<boolean>`substr(authority, 1, ${param<number>("size")}) = ${param("prefix")}`),
    ),
    key_id: prepare(() => open.where("submitted_by", "=", param("owner", "uuid"))),
  };
}

/** Returns the case-folded name; null if the name equals its folded form. */
export function foldAgentName(agentId: string): string | null {
  const fold = foldName(agentId);
  return fold === agentId ? null : fold;
}

export function prepareAgentNames(db: Kysely<Tables>): Statement {
  return prepare(() => db.selectFrom("actions").select(["agent_id", "agent_fold"]).distinct());
}

/**
 * Finds actions with a wrong case-folded agent name. A suspension of the agent would not find these actions. For the
 * audit.
 */
export async function findAgentFoldMismatches(names: Statement, db: SqlReader): Promise<string[]> {
  return (await readRows<{ agent_id: string; agent_fold: string | null }>(db, names, {}))
    .filter(({ agent_id, agent_fold }) => foldAgentName(agent_id) !== agent_fold)
    .map(({ agent_id }) => `the column agent_fold of actions of the agent "${agent_id}" was altered`);
}
