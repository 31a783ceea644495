/**
 * Deletes rows that the head does not cover, and rows that refer to them. Such rows can remain if a connection is lost
 * within a transaction. No caller got a response about them. Documents of plugins do not need a repair, because the
 * database refuses changes to documents outside a transaction.
 */
import { sql, type Kysely } from "kysely";
import {
  isCoreEntry,
  decodeEntry,
  TILE_WIDTH,
  type EntryBody,
  StorageError,
  type CopiedRow,
  type CopiedTable,
  recomputeActionRow,
  type RemovedRow,
} from "../../src/storage/index.ts";
import type { BundleReader } from "./bundles.ts";
import { CHANGEABLE_COLUMNS } from "./action-writes.ts";
import type { SqlDialect } from "./dialect.ts";
import { createLedgerReader } from "./ledger-reads.ts";
import { TIME_ASSIGNMENTS } from "./past-actions.ts";
import type { ReadStatements } from "./queries.ts";
import * as schema from "./table-schema.ts";
import type { Tables } from "./table-schema.ts";
import { param, params, prepare, readRows, toPlainRow, type SqlExecutor, type Statement } from "./statement.ts";

type DeletionStatements = ReturnType<typeof prepareUncoveredRowStatements>;

type StoredContent = Record<string, unknown> & { past: string | null; result: string | null };

export interface UncoveredRowStatements {
  find: Statement;
  remove: Statement;
}

export function prepareUncoveredRowStatements(db: Kysely<Tables>) {
  const statementsFor = (
    table: CopiedTable,
    columns: readonly string[],
    key: string,
    compare: "=" | ">=",
  ): UncoveredRowStatements => ({
    find: prepare(() =>
      db
        .selectFrom(table as "meta")
        .select(columns as never)
        .where(key as never, compare, param<never>("at")),
    ),
    remove: prepare(() => db.deleteFrom(table as "meta").where(key as never, compare, param<never>("at"))),
  });
  return {
    entries: statementsFor("entries", schema.ENTRY_COLUMNS, "seq", ">="),
    approvals: statementsFor("approvals", schema.APPROVAL_COLUMNS, "seq", ">="),
    deliveries: statementsFor("deliveries", schema.DELIVERY_COLUMNS, "seq", ">="),
    actions: statementsFor("actions", schema.ACTION_COLUMNS, "decision_seq", ">="),
    agents: statementsFor("agents", schema.AGENT_COLUMNS, "registered_seq", ">="),
    keys: statementsFor("api_keys", schema.KEY_COLUMNS, "id", "="),
    idempotency: statementsFor("idempotency", schema.IDEMPOTENCY_COLUMNS, "resource_id", "="),
    limitUses: statementsFor("limit_uses", schema.LIMIT_USE_COLUMNS, "action_id", "="),
    pastActions: statementsFor("past_actions", schema.PAST_ACTION_COLUMNS, "action_id", "="),
    tiles: {
      find: prepare(() => tilesBehind(db.selectFrom("tiles").select(schema.TILE_COLUMNS))),
      remove: prepare(() => tilesBehind(db.deleteFrom("tiles"))),
    },
    reset: prepare(() =>
      db.updateTable("actions").set(params<object>(CHANGEABLE_COLUMNS)).where("id", "=", param("id", "uuid")),
    ),
    setPastActions: prepare(() =>
      db.updateTable("past_actions").set(TIME_ASSIGNMENTS).where("action_id", "=", param("action_id")),
    ),
    deleteTotals: prepare(() => db.deleteFrom("limit_totals")),
    deleteSums: prepare(() => db.deleteFrom("action_sums")),
    recomputeSums: prepare(() => db.updateTable("sums_state").set({ folded: sql.lit(-1) })),
  };
}

function tilesBehind<Query extends { where(column: "level" | "index", compare: "=" | ">=", value: never): Query }>(
  query: Query,
): Query {
  return query.where("level", "=", param<never>("level")).where("index", ">=", param<never>("at"));
}

const TILE_LEVELS = 7;

/**
 * Deletes the rows in one transaction. Calls `keep` with every row before it is deleted. Resolves to the number of
 * deleted entries.
 */
export async function deleteUncoveredRows(
  statements: DeletionStatements,
  reads: ReadStatements,
  bundles: BundleReader,
  dialect: SqlDialect,
  db: SqlExecutor,
  keep: (rows: readonly RemovedRow[]) => Promise<void>,
): Promise<number> {
  const { size } = toPlainRow<{ size: number }>((await db.all(reads.head, {}))[0] as never);
  const signed = (await db.all(reads.checkpoint, {}))[0]?.["size"];
  if (typeof signed === "number" && signed > size)
    throw new StorageError(
      "corrupt",
      `the head (size ${size}) is behind the newest signed checkpoint (size ${signed}): a checkpoint covers these entries, so they are not deleted`,
    );
  const collected: RemovedRow[] = [];
  const removals: [Statement, object][] = [];
  async function collectRows(
    table: CopiedTable,
    { find, remove }: UncoveredRowStatements,
    values: object,
  ): Promise<CopiedRow[]> {
    const rows = await readRows<CopiedRow>(db, find, values);
    if (rows.length > 0) removals.push([remove, values]);
    collected.push(...rows.map((row) => ({ table, row })));
    return rows;
  }

  const entries = await collectRows("entries", statements.entries, { at: size });
  if (entries.length === 0) return 0;
  const bodies = entries.map((row) => decodeEntry<EntryBody>(row["bytes"] as Uint8Array));
  // Delete the rows that refer to an action before the action itself.
  await collectRows("approvals", statements.approvals, { at: size });
  await collectRows("deliveries", statements.deliveries, { at: size });
  const added = (await collectRows("agents", statements.agents, { at: size })).map(({ id }) => String(id));
  for (let level = 0; level < TILE_LEVELS; level++)
    await collectRows("tiles", statements.tiles, { level, at: Math.floor(size / TILE_WIDTH ** (level + 1)) });
  for (const body of bodies) {
    if (body.type !== "api_key" || body.change !== "created") continue;
    await collectRows("api_keys", statements.keys, { at: body.key.id });
    added.push(body.key.id);
  }
  const actions = new Set(
    (await db.all(statements.actions.find, { at: size })).map((row) => String(toPlainRow<CopiedRow>(row)["id"])),
  );
  // Delete the idempotency keys, so that a repeated request does not refer to a deleted action.
  for (const at of [...added, ...actions]) await collectRows("idempotency", statements.idempotency, { at });
  for (const at of actions) await collectRows("limit_uses", statements.limitUses, { at });
  for (const at of actions) await collectRows("past_actions", statements.pastActions, { at });
  await collectRows("actions", statements.actions, { at: size });
  await keep(collected);

  const touched = new Set(bodies.flatMap((body) => (isCoreEntry(body) && "action_id" in body ? [body.action_id] : [])));
  for (const text of dialect.suspendAppendOnly?.(["entries", "tiles"]).begin ?? []) await runSql(db, text);
  for (const [remove, values] of removals) await db.run(remove, values);
  for (const text of dialect.suspendAppendOnly?.(["entries", "tiles"]).end ?? []) await runSql(db, text);
  for (const id of touched) if (!actions.has(id)) await restoreAction(statements, reads, bundles, db, id);
  await db.run(statements.deleteTotals, {});
  await db.run(statements.deleteSums, {});
  await db.run(statements.recomputeSums, {});
  return entries.length;
}

/** Restores an action to the state that results from its remaining entries. */
async function restoreAction(
  statements: DeletionStatements,
  reads: ReadStatements,
  bundles: BundleReader,
  db: SqlExecutor,
  id: string,
): Promise<void> {
  const row = (await db.all(reads.action, { id }))[0];
  const entries = await createLedgerReader(reads, db, bundles).entriesOfAction(id);
  const recomputed = row === undefined ? null : recomputeActionRow(toPlainRow<StoredContent>(row), entries);
  if (recomputed === null) return;
  await db.run(statements.reset, { ...recomputed.row, id });
  await db.run(statements.setPastActions, { action_id: id, at: recomputed.historyTime });
}

async function runSql(db: SqlExecutor, text: string): Promise<void> {
  await db.run({ sql: text, names: [] }, {});
}
