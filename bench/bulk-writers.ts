/** Writes the rows of `bulk.ts` into a store that no service uses, and creates the indexes of actions afterwards. */
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import postgres from "postgres";
import { loadSqlite } from "../plugins/storage-sqlite/load-library.ts";
import { postgresDialect, sqliteDialect, type SqlDialect } from "../plugins/storage-sql/api.ts";
import { initialSchema } from "../plugins/storage-sql/migrations/initial.ts";
import { ACTION_COLUMNS, ENTRY_COLUMNS } from "../plugins/storage-sql/table-schema.ts";
import type { BulkAction, BulkWriter } from "./bulk.ts";

export interface OpenWriter extends BulkWriter {
  /** Creates the indexes, and closes the store. */
  end(): Promise<void>;
}

/**
 * Indexes that contain every action and are not in the order of the actions. Sorting the keys of all actions is faster
 * than inserting each one into a large index.
 */
const INDEXES = [
  "actions_by_agent",
  "actions_by_submitter",
  "actions_by_status",
  "actions_by_tool",
  "actions_by_operation",
  "actions_by_time",
  "actions_open_of_agent",
  "actions_open_of_key",
];

const createStatements = (dialect: SqlDialect): string[] =>
  initialSchema(dialect).filter((statement) => INDEXES.some((name) => statement.includes(`index "${name}" on `)));

type Values = Record<string, string | number | Buffer | null>;

/** Columns of an action that differ from those of its template. */
const actionValues = (action: BulkAction): Values => ({
  decision_seq: action.seq,
  id: Buffer.from(action.id.replaceAll("-", ""), "hex"),
  agent_id: action.agentId,
  request: action.request,
  request_hash: action.requestHash,
  salt: action.salt,
  decision_hash: action.leafHash,
  approved_until: action.approvedUntil,
  created_at: action.at,
  updated_at: action.at,
});

/** Columns of an entry that differ from those of its template. Its bytes are in a bundle. */
const entryValues = (action: BulkAction): Values => ({
  seq: action.seq,
  leaf_hash: action.leafHash,
  bytes: Buffer.alloc(0),
  action_id: action.id,
  agent_id: action.agentId,
  created_at: action.at,
});

const TABLES = {
  actions: { key: "decision_seq", columns: ACTION_COLUMNS as readonly string[], values: actionValues },
  entries: { key: "seq", columns: ENTRY_COLUMNS as readonly string[], values: entryValues },
};
type Table = keyof typeof TABLES;
const joined = (hashes: readonly Uint8Array[]): Buffer => Buffer.concat(hashes);

/** Opens the SQLite store of a data folder. */
export async function openSqliteWriter(data: string): Promise<OpenWriter> {
  const { DatabaseSync } = await loadSqlite();
  const db = new DatabaseSync(join(data, "assent.db"));
  db.exec("pragma synchronous = off; pragma cache_size = -400000; pragma threads = 2");
  for (const name of INDEXES) db.exec(`drop index "${name}"`);
  const insert = (table: Table) => {
    const { key, columns, values } = TABLES[table];
    const names = Object.keys(values(EMPTY));
    const selected = columns.map((name) => (names.includes(name) ? `?${names.indexOf(name) + 2}` : `"${name}"`));
    const statement = db.prepare(
      `insert into ${table} (${columns.map((name) => `"${name}"`).join(", ")}) select ${selected.join(", ")} from ${table} where ${key} = ?1`,
    );
    return (action: BulkAction) => statement.run(action.template, ...Object.values(values(action)));
  };
  const [action, entry] = [insert("actions"), insert("entries")];
  const tile = db.prepare(`insert into tiles ("level", "index", "root", "hashes") values (?, ?, ?, ?)`);
  const bundle = db.prepare("insert into entry_bundles (start, bytes) values (?, ?)");
  const head = db.prepare("update ledger_head set size = ?, root = ?, edge = ?");
  return {
    async write({ actions, tiles, bundles, head: { size, root, edge } }) {
      db.exec("begin immediate");
      head.run(size, root, joined(edge));
      for (const one of actions) {
        action(one);
        entry(one);
      }
      for (const one of tiles) tile.run(one.level, one.index, one.root, one.hashes);
      for (const one of bundles) bundle.run(one.start, one.bytes);
      db.exec("commit");
    },
    async end() {
      for (const statement of createStatements(sqliteDialect)) db.exec(statement);
      db.close();
    },
  };
}

const EMPTY: BulkAction = {
  seq: 0,
  template: 0,
  id: "",
  agentId: "",
  at: 0,
  approvedUntil: null,
  request: "",
  requestHash: Buffer.alloc(0),
  salt: Buffer.alloc(0),
  leafHash: Buffer.alloc(0),
};

/** Opens the Postgres store of a database, as its superuser. */
export async function openPostgresWriter(database: string): Promise<OpenWriter> {
  // Without `max_lifetime: null`, the client ends a connection that is 30 to 60 minutes old, and `end` then waits forever.
  const client = postgres(database, { max: 1, max_lifetime: null, onnotice: () => {} });
  const sql = await client.reserve();
  // Disable the row triggers, because this writer does not make the errors that they detect.
  await sql.unsafe(
    "set session_replication_role = replica; set synchronous_commit = off; set maintenance_work_mem = '1GB'",
  );
  for (const name of INDEXES) await sql.unsafe(`drop index "${name}"`);
  const templates = new Map<string, (string | null)[]>();
  async function readTemplate(table: Table, seq: number): Promise<void> {
    if (templates.has(`${table} ${seq}`)) return;
    const { columns, key } = TABLES[table];
    const [row] = await sql.unsafe(
      `select ${columns.map((name) => `"${name}"::text as "${name}"`).join(", ")} from ${table} where ${key} = ${seq}`,
    );
    templates.set(
      `${table} ${seq}`,
      columns.map((name) => (row?.[name] as string | undefined) ?? null),
    );
  }
  const copy = async (table: string, columns: readonly string[], lines: Iterable<string>): Promise<void> => {
    const writable = await sql
      .unsafe(`copy ${table} (${columns.map((name) => `"${name}"`).join(", ")}) from stdin`)
      .writable();
    await pipeline(Readable.from(lines), writable);
  };
  async function copyRows(table: Table, actions: readonly BulkAction[]): Promise<void> {
    const { columns, values } = TABLES[table];
    const isBytes = (name: string): boolean => table === "entries" && (name === "leaf_hash" || name === "bytes");
    for (const { template } of actions) await readTemplate(table, template);
    const lines = actions.map((action) => {
      const own = values(action);
      const row = templates.get(`${table} ${action.template}`) ?? [];
      const cells = columns.map((name, i) => {
        if (name === "id") return action.id;
        const value = name in own ? (own[name] ?? null) : (row[i] ?? null);
        if (value === null) return "\\N";
        if (value instanceof Buffer) return (isBytes(name) ? "\\\\x" : "") + value.toString("hex");
        return String(value).replace(/[\\\t\n\r]/g, (found) => ESCAPES[found] as string);
      });
      return `${cells.join("\t")}\n`;
    });
    await copy(table, columns, chunksOf(lines));
  }
  return {
    async write({ actions, tiles, bundles, head: { size, root, edge } }) {
      await sql.unsafe("begin");
      await copyRows("actions", actions);
      await copyRows("entries", actions);
      const hex = (bytes: Uint8Array): string => `\\\\x${Buffer.from(bytes).toString("hex")}`;
      const line = (...cells: (string | number)[]): string => `${cells.join("\t")}\n`;
      await copy(
        "tiles",
        ["level", "index", "root", "hashes"],
        tiles.map((one) => line(one.level, one.index, hex(one.root), hex(one.hashes))),
      );
      await copy(
        "entry_bundles",
        ["start", "bytes"],
        bundles.map((one) => line(one.start, hex(one.bytes))),
      );
      await sql`update ledger_head set size = ${size}, root = ${Buffer.from(root)}, edge = ${joined(edge)}`;
      await sql.unsafe("commit");
    },
    async end() {
      for (const statement of createStatements(postgresDialect)) await sql.unsafe(statement);
      await sql.unsafe("vacuum analyze");
      sql.release();
      await client.end();
    },
  };
}

const ESCAPES: Record<string, string> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** Joins lines, because each chunk is a separate protocol message. */
function* chunksOf(lines: readonly string[]): Iterable<string> {
  for (let at = 0; at < lines.length; at += 256) yield lines.slice(at, at + 256).join("");
}
