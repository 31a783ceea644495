/**
 * The bare reference: the same HTTP adapter and the same batches (SQLite, or Postgres with `DATABASE_URL`) with no logic. A request's
 * body is read, a fixed row and a fixed entry go into the next batch, and after its commit a fixed
 * answer goes out. No key, no JSON, no policy, no hash, no signature, no log.
 */
import { randomBytes } from "node:crypto";
import { setImmediate } from "node:timers";
import { join } from "node:path";
import { postgresStorage } from "../plugins/storage-postgres/index.ts";
import { sqliteStorage } from "../plugins/storage-sqlite/index.ts";
import type { ActionRow, EntryRow } from "../src/contract/storage.ts";
import { uuidv7 } from "uuidv7";
import { serve, ServerResponse } from "../src/serve/index.ts";
import sample from "./sample.json" with { type: "json" };

const [data] = process.argv.slice(2) as [string];
const database = process.env["DATABASE_URL"];
const storage =
  database === undefined ? sqliteStorage({ path: join(data, "reference.db") }) : postgresStorage({ url: database });
await storage.open();

const MAX_BATCH = 256;
const answer = JSON.stringify(sample.answer);
const entryBytes = new TextEncoder().encode(JSON.stringify(sample.entry));
let size = 0;
let waiting: (() => void)[] = [];
let running = false;

/** As scattered as real leaf hashes: where a row lands in an index is part of what a batch costs. */
function unique(): Uint8Array {
  if (pool.length < 32) pool = randomBytes(8192);
  const hash = pool.subarray(0, 32);
  pool = pool.subarray(32);
  return hash;
}
let pool = Buffer.alloc(0);

async function run(): Promise<void> {
  for (;;) {
    // Gathers as the sequencer does.
    for (let seen = -1; waiting.length > seen && waiting.length < MAX_BATCH;) {
      seen = waiting.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (waiting.length === 0) break;
    const batch = waiting.slice(0, MAX_BATCH);
    waiting = waiting.slice(batch.length);
    await storage.write(async (tx) => {
      const head = await tx.head();
      const entries: EntryRow[] = [];
      for (let i = 0; i < batch.length; i++) {
        const seq = size + i;
        const id = uuidv7();
        entries.push({
          seq,
          type: "decision",
          leaf_hash: unique(),
          bytes: entryBytes,
          action_id: id,
          agent_id: "support-bot",
          submitted_by: "key",
          created_at: seq,
        });
        await tx.insertAction({
          ...(sample.row as ActionRow),
          id,
          decision_seq: seq,
          decision_hash: id.padEnd(64, "0"),
        });
      }
      await tx.append(entries, [], { ...head, size: size + batch.length });
      if (size > 0) await tx.putCheckpoint(size, sample.note);
    });
    size += batch.length;
    for (const done of batch) done();
  }
  running = false;
}

const { url } = await serve(
  async (request) => {
    await request.arrayBuffer();
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (!running) {
        running = true;
        void run();
      }
    });
    return new ServerResponse(answer, { status: 200, headers: { "content-type": "application/json" } });
  },
  { host: "127.0.0.1", port: 0 },
);
process.stdout.write(`${JSON.stringify({ url, key: "none" })}\n`);
