/**
 * The minimal path of a decision, as a baseline: key, canonical form, request hash, leaf, tree, one signed checkpoint
 * for each batch, and one durable commit for each batch (SQLite, or Postgres with `DATABASE_URL`). It has no schema,
 * policies, log, commitments or audit. It shares only the HTTP adapter and the database driver with the service.
 */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { join } from "node:path";
import { setImmediate } from "node:timers";
import canonicalize from "canonicalize";
import postgres from "postgres";
import { uuidv7 } from "uuidv7";
import { serve, ServerResponse } from "../src/serve/index.ts";
import { answerCounts, countedSqlite } from "./counters.ts";

interface Row {
  seq: number;
  leaf: Buffer;
  entry: Buffer;
  id: string;
  status: string;
  agent: string;
  tool: string;
  body: string;
  created: string;
}

interface Sink {
  isKey(hash: string): boolean;
  /** Resolves when the batch is durable. */
  commit(rows: readonly Row[], size: number, checkpoint: string): void | Promise<void>;
}

const TABLES = (bytes: string): string[] => [
  `create table entries (seq integer primary key, hash ${bytes}, body ${bytes})`,
  "create table actions (id text primary key, status text, agent text, tool text, body text, created text)",
  "create index by_status on actions (status, id)",
  "create index by_agent on actions (agent, id)",
  "create index by_tool on actions (tool, id)",
  "create table keys (hash text primary key, name text)",
  "create table ledger_head (id integer primary key, size integer, checkpoint text)",
  "insert into ledger_head values (1, 0, '')",
];

const [data] = process.argv.slice(2) as [string];
const database = process.env["DATABASE_URL"];
const KEY = "bench-key";
const sha256 = (...parts: (string | Uint8Array)[]): Buffer => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};
const keyHash = sha256(KEY).toString("hex");
const sink = database === undefined ? await toSqlite(join(data, "bare.db")) : await toPostgres(database);

async function toSqlite(path: string): Promise<Sink> {
  const { DatabaseSync } = await countedSqlite();
  const db = new DatabaseSync(path);
  db.exec("pragma journal_mode = wal");
  db.exec("pragma synchronous = full");
  for (const statement of TABLES("blob")) db.exec(statement);
  db.prepare("insert into keys values (?, ?)").run(keyHash, "bench");
  const key = db.prepare("select name from keys where hash = ?");
  const entry = db.prepare("insert into entries values (?, ?, ?)");
  const action = db.prepare("insert into actions values (?, ?, ?, ?, ?, ?)");
  const head = db.prepare("update ledger_head set size = ?, checkpoint = ? where id = 1");
  return {
    isKey: (hash) => key.all(hash).length === 1,
    commit(rows, size, checkpoint) {
      db.exec("begin immediate");
      for (const row of rows) {
        entry.run(row.seq, row.leaf, row.entry);
        action.run(row.id, row.status, row.agent, row.tool, row.body, row.created);
      }
      head.run(size, checkpoint);
      db.exec("commit");
    },
  };
}

async function toPostgres(url: string): Promise<Sink> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  for (const statement of TABLES("bytea")) await sql.unsafe(statement);
  await sql`insert into keys values (${keyHash}, 'bench')`;
  // Cached at startup, so that a decision does not query the database for its key.
  const keys = new Set((await sql<{ hash: string }[]>`select hash from keys`).map(({ hash }) => hash));
  return {
    isKey: (hash) => keys.has(hash),
    async commit(rows, size, checkpoint) {
      const text = JSON.stringify(
        rows.map((row) => ({ ...row, leaf: row.leaf.toString("base64"), entry: row.entry.toString("base64") })),
      );
      await sql`
        with given as (
          select * from json_to_recordset(${text}::text::json)
            as r (seq int, leaf text, entry text, id text, status text, agent text, tool text, body text, created text)
        ), acted as (insert into actions select id, status, agent, tool, body, created from given),
        entered as (insert into entries select seq, decode(leaf, 'base64'), decode(entry, 'base64') from given)
        update ledger_head set size = ${size}, checkpoint = ${checkpoint} where id = 1`;
    },
  };
}

const { privateKey } = generateKeyPairSync("ed25519");
const [LEAF, NODE] = [Buffer.of(0), Buffer.of(1)];
/** By level: the root of the perfect subtree that has no sibling yet. */
const edge: Buffer[] = [];
let size = 0;

function append(leaf: Buffer): void {
  let node = leaf;
  let level = 0;
  for (let rest = size; rest % 2 === 1; rest = (rest - 1) / 2) node = sha256(NODE, edge[level++] as Buffer, node);
  edge[level] = node;
  size += 1;
}

function root(): Buffer {
  let node: Buffer | null = null;
  for (let level = 0, rest = size; rest > 0; level++, rest = Math.floor(rest / 2))
    if (rest % 2 === 1) node = node === null ? (edge[level] as Buffer) : sha256(NODE, edge[level] as Buffer, node);
  return node ?? sha256();
}

let waiting: { row: Row; done: () => void }[] = [];
let running = false;

async function flush(): Promise<void> {
  while (waiting.length > 0) {
    const batch = waiting;
    waiting = [];
    for (const { row } of batch) {
      row.seq = size;
      append(row.leaf);
    }
    const text = `bare\n${size}\n${root().toString("base64")}\n`;
    const note = `${text}\n— bare ${sign(null, Buffer.from(text), privateKey).toString("base64")}\n`;
    await sink.commit(
      batch.map(({ row }) => row),
      size,
      note,
    );
    for (const { done } of batch) done();
    // Let requests that have arrived join the next batch.
    await new Promise((resolve) => setImmediate(resolve));
  }
  running = false;
}

function committed(row: Row): Promise<void> {
  return new Promise((done) => {
    waiting.push({ row, done });
    if (running) return;
    running = true;
    setImmediate(() => void flush());
  });
}

interface Asked {
  agent_id: string;
  tool: string;
  operation: string;
  params: { amount?: number };
}

const { url } = await serve(
  async (request) => {
    const value = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
    if (!sink.isKey(sha256(value).toString("hex"))) return new ServerResponse("no such key", { status: 401 });
    const asked = JSON.parse(await request.text()) as Asked;
    const requestHash = sha256(canonicalize(asked) as string).toString("hex");
    const id = uuidv7();
    const created = new Date().toISOString();
    const allowed = (asked.params.amount ?? 0) <= 1000;
    const entry = Buffer.from(
      canonicalize({
        v: 1,
        type: "decision",
        id,
        at: created,
        agent: asked.agent_id,
        tool: asked.tool,
        operation: asked.operation,
        request: requestHash,
        effect: allowed ? "allow" : "deny",
        policy: "bare",
        rule: "amount",
        policy_set: requestHash,
      }) as string,
    );
    const leaf = sha256(LEAF, entry);
    const status = allowed ? "allowed" : "denied";
    const action = { id, ...asked, status, request_hash: requestHash, decision_hash: leaf.toString("hex"), created };
    const body = JSON.stringify(action);
    await committed({ seq: -1, leaf, entry, id, status, agent: asked.agent_id, tool: asked.tool, body, created });
    return new ServerResponse(body, { status: 200, headers: { "content-type": "application/json" } });
  },
  { host: "127.0.0.1", port: 0 },
);
answerCounts();
process.stdout.write(`${JSON.stringify({ url, key: KEY })}\n`);
