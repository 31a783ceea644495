/** Reads and writes the rows of all tables, to copy a store from one database to another. */
import { sql, type Kysely } from "kysely";
import {
  COPIED_TABLES,
  type CopiedRow,
  type CopiedTable,
  type LedgerHead,
  type StorageCopying,
} from "../../src/storage/index.ts";
import type { BundleReader, EntryBytes } from "./bundles.ts";
import { PACKED_COLUMNS } from "./packed-columns.ts";
import { foldAgentName } from "./open-actions.ts";
import * as schema from "./table-schema.ts";
import type { Tables } from "./table-schema.ts";
import { param, params, prepare, readRows, type SqlExecutor, type SqlReader, type Statement } from "./statement.ts";
import { joinHashes } from "./writes.ts";

interface Shape {
  key: readonly string[];
  columns: readonly string[];
  /** Whether rows of the table can change. False for an append-only table. */
  changes: boolean;
  /** A column that is computed when a row is written, so it is not copied. */
  computed?: "agent_fold";
}

const SHAPES: Readonly<Record<CopiedTable, Shape>> = {
  entries: { key: ["seq"], columns: schema.ENTRY_COLUMNS, changes: false },
  tiles: { key: ["level", "index"], columns: schema.TILE_COLUMNS, changes: false },
  policies: { key: ["id"], columns: schema.POLICY_COLUMNS, changes: true },
  policy_versions: { key: ["policy_id", "version"], columns: schema.POLICY_VERSION_COLUMNS, changes: false },
  policy_sets: { key: ["digest"], columns: schema.POLICY_SET_COLUMNS, changes: false },
  api_keys: { key: ["id"], columns: schema.KEY_COLUMNS, changes: true },
  agents: { key: ["id"], columns: schema.AGENT_COLUMNS, changes: true },
  actions: { key: ["decision_seq"], columns: schema.ACTION_COLUMNS, changes: true, computed: "agent_fold" },
  approvals: { key: ["action_id", "principal"], columns: schema.APPROVAL_COLUMNS, changes: true },
  idempotency: { key: ["key_id", "route", "idempotency_key"], columns: schema.IDEMPOTENCY_COLUMNS, changes: true },
  deliveries: { key: ["position"], columns: schema.DELIVERY_COLUMNS, changes: true },
  limit_uses: {
    key: ["policy", "limit_name", "subject", "at", "action_id"],
    columns: schema.LIMIT_USE_COLUMNS,
    changes: true,
  },
  past_actions: {
    key: ["policy", "basis", "subject", "at", "action_id"],
    columns: schema.PAST_ACTION_COLUMNS,
    changes: true,
  },
  documents: { key: ["plugin", "key"], columns: schema.DOCUMENT_COLUMNS, changes: true },
  document_counter: { key: ["id"], columns: ["id", "last"], changes: true },
  meta: { key: ["name"], columns: ["name", "value"], changes: true },
};

const selectMeta = (db: Kysely<Tables>) => db.selectFrom("meta").select("name");

export interface TableStatements {
  first: Statement;
  after: Statement;
  last: Statement;
  count: Statement;
  write: Statement;
}

type CopyStatements = ReturnType<typeof prepareStorageCopying>;

export function prepareStorageCopying(db: Kysely<Tables>) {
  const tables = Object.fromEntries(
    COPIED_TABLES.map((table) => [table, statementsOf(db, table, SHAPES[table])]),
  ) as Record<CopiedTable, TableStatements>;
  return {
    tables,
    head: prepare(() =>
      db
        .updateTable("ledger_head")
        .set(params<object>(["size", "root", "edge", "policy_set", "epoch", "followed_digest", "seal"]))
        .where("id", "=", sql.lit(1)),
    ),
    checkpoint: prepare(() =>
      db
        .updateTable("checkpoint")
        .set(params<object>(["size", "note"]))
        .where("id", "=", sql.lit(1)),
    ),
  };
}

function statementsOf(
  db: Kysely<Tables>,
  table: CopiedTable,
  { key, columns, changes, computed }: Shape,
): TableStatements {
  const forms = PACKED_COLUMNS[table] ?? {};
  const rows = db.selectFrom(table as "meta").select(columns as never) as ReturnType<typeof selectMeta>;
  const ordered = key.reduce((query, column) => query.orderBy(column as never), rows);
  // A row-value comparison selects the rows that follow `after` in the order of the primary key.
  const left = sql.join(key.map((column) => sql.ref(column)));
  const right = sql.join(key.map((column) => sql`${param(`after_${column}`, forms[column])}`));
  const behind = sql<boolean>`(${left}) > (${right})`;
  const backwards = key.reduce((query, column) => query.orderBy(column as never, "desc"), rows);
  const written = computed === undefined ? columns : [...columns, computed];
  const insert = db.insertInto(table as "meta").values(params<never>(written, table));
  const rest = written.filter((column) => !key.includes(column));
  const replacing = insert.onConflict((conflict) =>
    conflict
      .columns(key as never)
      .doUpdateSet(Object.fromEntries(rest.map((column) => [column, sql.ref(`excluded.${column}`)])) as never),
  );
  return {
    first: prepare(() => ordered.limit(param<number>("limit"))),
    after: prepare(() => ordered.where(behind).limit(param<number>("limit"))),
    last: prepare(() => backwards.limit(sql.lit(1))),
    count: prepare(() => db.selectFrom(table as "meta").select((eb) => eb.fn.countAll<number>().as("n"))),
    write: prepare(() => (changes ? replacing : insert)),
  };
}

/** Creates the methods that copy a store. `write` runs its work in one durable transaction. */
export function createStorageCopying(
  statements: CopyStatements,
  reader: SqlReader,
  bundles: BundleReader,
  write: (work: (db: SqlExecutor) => Promise<void>) => Promise<void>,
): StorageCopying {
  async function rowsOf(table: CopiedTable, statement: Statement, values: object): Promise<CopiedRow[]> {
    const rows = await readRows<CopiedRow>(reader, statement, values);
    if (table === "entries") await bundles.withBytes(reader, rows as unknown as EntryBytes[]);
    return rows;
  }
  return {
    async read(table, after, limit) {
      const { first, after: behind } = statements.tables[table];
      const from =
        after === null ? {} : Object.fromEntries(SHAPES[table].key.map((column) => [`after_${column}`, after[column]]));
      return rowsOf(table, after === null ? first : behind, { ...from, limit });
    },
    async last(table) {
      return (await rowsOf(table, statements.tables[table].last, {}))[0] ?? null;
    },
    async count(table) {
      const [row] = await reader.all(statements.tables[table].count, {});
      return Number(row?.["n"]);
    },
    write: (table, rows) =>
      write(async (db) =>
        db.runMany(
          statements.tables[table].write,
          SHAPES[table].computed === undefined
            ? rows
            : rows.map((row) => ({ ...row, agent_fold: foldAgentName(String(row["agent_id"])) })),
        ),
      ),
    finish: (head: LedgerHead, checkpoint) =>
      write(async (db) => {
        await db.run(statements.head, { ...head, edge: joinHashes(head.edge) });
        if (checkpoint !== null) await db.run(statements.checkpoint, checkpoint);
      }),
  };
}
