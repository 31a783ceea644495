/** Finds what is open of one agent or one key, by two indexes over open actions alone. */
import { sql, type Kysely } from "kysely";
import type { ActionReads, ActionRow } from "../../src/contract/storage.ts";
import { foldName } from "../../src/domain/names.ts";
import type { SqlDialect } from "./dialect.ts";
import { fromActions, ofActions } from "./kinds.ts";
import { ACTION_COLUMNS, type Tables } from "./schema.ts";
import { param, plain, prepare, type SqlExecutor } from "./statement.ts";

// As in the indexes, letter for letter: the planner compares expressions.
export const IS_OPEN = "status in ('pending_approval', 'allowed', 'approved')";
export const OPEN_UNTIL = "case status when 'pending_approval' then expires_at else approved_until end";
/** The form in which names of agents are compared. */
export const AGENT = "coalesce(agent_fold, agent_id)";

export function prepareOpenActions(db: Kysely<Tables>, dialect: SqlDialect) {
  const until = sql.raw<number>(`(${OPEN_UNTIL})`);
  const open = fromActions(db, dialect)
    .select(ofActions(ACTION_COLUMNS, dialect))
    .where(sql.raw<boolean>(IS_OPEN))
    // For the index, which SQLite does not search by a pair that begins with an expression.
    .where(sql<boolean>`${until} >= ${param("open_until")}`)
    .where(sql<boolean>`(${until}, decision_seq) > (${param("open_until")}, ${param("decision_seq")})`)
    .orderBy(until)
    .orderBy("decision_seq")
    .limit(param<number>("limit"));
  const spellings = db.selectFrom("actions").select(["agent_id", sql<string | null>`agent_fold`.as("agent_fold")]);
  return {
    openActionsOf: {
      agent_id: prepare(open.where(sql<boolean>`${sql.raw(AGENT)} = ${param("whose")}`)),
      key_id: prepare(open.where("submitted_by", "=", param("whose", "uuid"))),
    },
    spellings: prepare(spellings.distinct()),
  };
}

export function readOpenActions(
  { openActionsOf }: ReturnType<typeof prepareOpenActions>,
  db: Pick<SqlExecutor, "all">,
): Pick<ActionReads, "openActionsOf"> {
  return {
    async openActionsOf(owner, after, limit) {
      const [statement, whose] =
        "agent_id" in owner ? [openActionsOf.agent_id, foldName(owner.agent_id)] : [openActionsOf.key_id, owner.key_id];
      return (await db.all(statement, { whose, ...after, limit })).map((row) => plain<ActionRow>(row));
    },
  };
}

export function prepareAgentFold(db: Kysely<Tables>) {
  return prepare(
    db
      .updateTable("actions")
      .set({ agent_fold: param<string>("agent_fold") } as never)
      .where("id", "=", param("id", "uuid")),
  );
}

/** Most names of agents are written as they are compared: their rows have nothing in the column. */
export function agentFold(agentId: string): string | null {
  const fold = foldName(agentId);
  return fold === agentId ? null : fold;
}

/** For the audit: names under which a suspension would not find an agent's open actions. */
export async function wrongFolds(
  { spellings }: ReturnType<typeof prepareOpenActions>,
  db: Pick<SqlExecutor, "all">,
): Promise<string[]> {
  return (await db.all(spellings, {}))
    .map((row) => plain<{ agent_id: string; agent_fold: string | null }>(row))
    .filter(({ agent_id, agent_fold }) => agentFold(agent_id) !== agent_fold)
    .map(({ agent_id }) => `actions of the agent "${agent_id}" are filed under another name`);
}
