/** SQL statements that write actions. */
import { sql, type Kysely } from "kysely";
import {
  ERASABLE_PARTS,
  type ErasablePart,
  type ActionChange,
  type ActionGuard,
  type ActionWrites,
} from "../../src/storage/index.ts";
import { removeRequestHash, type prepareHashIndexReads, type prepareHashIndexWrites } from "./hash-index.ts";
import { foldAgentName } from "./open-actions.ts";
import { ACTION_COLUMNS, type Tables } from "./table-schema.ts";
import { param, params, prepare, prepareInsert, type SqlExecutor, type Statement } from "./statement.ts";
import type { StatusChangeCollector } from "./sums.ts";

const EMPTY = sql.lit("");

export function prepareActionWrites(db: Kysely<Tables>) {
  return {
    insertAction: prepareInsert(db, "actions", [...ACTION_COLUMNS, "agent_fold"]),
    noteAsked: prepare(() =>
      db
        .updateTable("actions")
        .set(params<object>(["asked_at", "waits"]))
        .where("id", "=", param("id", "uuid")),
    ),
    updateAction: actionUpdates(db),
    eraseAction: prepare(() =>
      db
        .updateTable("actions")
        .set({
          request: EMPTY,
          request_hash: EMPTY,
          salt: EMPTY,
          past: sql`null`,
          meta: sql`null`,
          questions: sql`null`,
          effective: sql`null`,
          effective_hash: sql`null`,
          result: sql`null`,
          erased_at: param<number>("at"),
        })
        .where("id", "=", param("id", "uuid"))
        .where("erased_at", "is", null)
        .where(sql<boolean>`status <> 'pending_approval'`),
    ),
    erasePart: Object.fromEntries(
      ERASABLE_PARTS.map((part) => [
        part,
        prepare(() =>
          db
            .updateTable("actions")
            .set({ [part]: sql`null` })
            .where("id", "=", param("id", "uuid"))
            .where("erased_at", "is", null)
            .where(part, "is not", null)
            .where(sql<boolean>`status <> 'pending_approval'`),
        ),
      ]),
    ) as Record<ErasablePart, Statement>,
  };
}

export function createActionWriter(
  moves: StatusChangeCollector,
  reads: ReturnType<typeof prepareHashIndexReads>,
  writes: ReturnType<typeof prepareActionWrites> & ReturnType<typeof prepareHashIndexWrites>,
  db: SqlExecutor,
): Pick<ActionWrites, "insertAction" | "noteAsked" | "updateAction" | "eraseAction" | "eraseActionPart"> {
  return {
    async insertAction(row) {
      await db.send(writes.insertAction, row, foldAgentName(row.agent_id));
    },
    async noteAsked(id, asked_at, waits) {
      await db.run(writes.noteAsked, { id, asked_at, waits });
    },
    async updateAction(id, guard, change) {
      const moved =
        (await db.run(writes.updateAction(guard, change), {
          ...change,
          ...guard,
          status: change.status,
          id,
          if_status: guard.status,
        })) === 1;
      if (moved) moves.add(id, guard.status, change.status);
      return moved;
    },
    async eraseAction(id, at) {
      await removeRequestHash(reads, writes, db, id);
      return (await db.run(writes.eraseAction, { id, at })) === 1;
    },
    async eraseActionPart(id, part) {
      return (await db.run(writes.erasePart[part], { id })) === 1;
    },
  };
}

/** Columns that `updateAction` can change. */
export const CHANGEABLE_COLUMNS = [
  "status",
  "updated_at",
  "reason",
  "reason_code",
  "request_hash",
  "salt",
  "past",
  "questions",
  "effective",
  "effective_hash",
  "quorum",
  "expires_at",
  "approved_until",
  "rejection_until",
  "started_at",
  "started_by",
  "result",
  "waited_ms",
] as const;

/** Returns the statement for a combination of guard and change. Prepares it on first use. */
function actionUpdates(db: Kysely<Tables>): (guard: ActionGuard, change: ActionChange) => Statement {
  const statements = new Map<string, Statement>();
  return (guard, change) => {
    const changed = CHANGEABLE_COLUMNS.filter((name) => change[name] !== undefined);
    const guards = (["expires_after", "expired_by", "approved_after"] as const).filter(
      (name) => guard[name] !== undefined,
    );
    const shape = [...changed, "if", ...guards].join(" ");
    let statement = statements.get(shape);
    if (statement === undefined) {
      let query = db
        .updateTable("actions")
        .set(params<object>(changed, "actions"))
        .where("id", "=", param("id", "uuid"))
        .where("status", "=", param("if_status"));
      if (guards.includes("expires_after")) query = query.where("expires_at", ">", param("expires_after"));
      if (guards.includes("expired_by")) query = query.where("expires_at", "<=", param("expired_by"));
      if (guards.includes("approved_after")) query = query.where("approved_until", ">", param("approved_after"));
      statement = prepare(() => query);
      statements.set(shape, statement);
    }
    return statement;
  };
}
