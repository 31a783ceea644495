/**
 * Measures the bytes of an entry by table and index, before and after the background work, in a store with
 * BENCH_ACTIONS actions (default 12,000) of different requests that the service has decided. Also measures the CPU time
 * of one decision. Uses SQLite, or with `DATABASE_URL=start` a Postgres that it starts.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { loadSqlite } from "../plugins/storage-sqlite/load-library.ts";
import actions from "../plugins/actions/index.ts";
import policyFiles from "../plugins/policy-files/index.ts";
import { postgresStorage } from "../plugins/storage-postgres/index.ts";
import { sqliteStorage } from "../plugins/storage-sqlite/index.ts";
import { createLogger, createRuntime, loadConfig } from "../src/index.ts";
import { definePlugin, type Plugin } from "../src/plugin.ts";
import { auditStore } from "../src/testing/ledger-audit.ts";
import { startPostgres } from "../test/support/postgres.ts";
import sample from "./sample.json" with { type: "json" };

const ACTIONS = Number(process.env["BENCH_ACTIONS"] ?? 12_000);
const AT_ONCE = 32;

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const server =
  process.env["DATABASE_URL"] === "start" ? (delete process.env["DATABASE_URL"], await startPostgres()) : null;
const url = server === null ? null : await server.database();
const path = join(folder, "assent.db");
const out = (line: string): boolean => process.stdout.write(`${line}\n`);

const openable = () => (url === null ? sqliteStorage({ path }) : postgresStorage({ url, acceptUnsafeServer: true }));

interface Size {
  name: string;
  bytes: number;
  unused: number;
}

async function sizes(): Promise<Size[]> {
  if (url === null) {
    const db = new (await loadSqlite()).DatabaseSync(path);
    try {
      return db
        .prepare(
          "select name, sum(pgsize) as bytes, sum(unused) as unused from dbstat group by name order by sum(pgsize) desc",
        )
        .all() as Size[];
    } finally {
      db.close();
    }
  }
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await client`vacuum`;
    return (
      await client<
        { name: string; bytes: string }[]
      >`select c.relname as name, case c.relkind when 'r' then pg_table_size(c.oid) else pg_relation_size(c.oid) end::text as bytes
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'public' and c.relkind in ('r', 'i') order by 2`
    )
      .map(({ name, bytes }) => ({ name, bytes: Number(bytes), unused: 0 }))
      .sort((a, b) => b.bytes - a.bytes);
  } finally {
    await client.end();
  }
}

async function show(title: string, entries: number): Promise<void> {
  const all = await sizes();
  const each = (n: number): string => (n / entries).toFixed(0).padStart(7);
  out(`\n${title}: ${entries} entries`);
  out(`${"".padEnd(34)} bytes  unused`);
  for (const { name, bytes, unused } of all)
    if (bytes / entries >= 1) out(`${name.padEnd(32)}${each(bytes)} ${each(unused)}`);
  out(`${"sum".padEnd(32)}${each(all.reduce((sum, { bytes }) => sum + bytes, 0))}`);
  if (url === null) out(`${"the file".padEnd(32)}${each(statSync(path).size)}`);
}

let key = "";
let n = 0;
/** Returns a request body. All bodies of a run differ in content and in length. */
function body(): string {
  n++;
  const word = (length: number): string => randomBytes(length).toString("base64url");
  return JSON.stringify({
    ...sample,
    agent_id: `agent-${n % 20}`,
    params: { ...sample.params, amount: (n * 7) % 90, charge: `ch_${word(12)}`, note: word(n % 40) },
    context: { ticket: `T-${n}` },
  });
}

/**
 * Fills the store up to `amount` actions. Returns the CPU time of one decision in this process in microseconds,
 * including the load generator.
 */
async function fill(amount: number): Promise<number> {
  const storage = openable();
  const { config } = loadConfig({
    cwd: folder,
    env: {
      ASSENT_DATA: folder,
      ASSENT_POLICIES: new URL("../policies", import.meta.url).pathname,
      ASSENT_AGENTS: "any",
    },
  });
  const store = definePlugin({ name: "storage-measured", storage: () => storage });
  const plugins = ([store, policyFiles, actions] as Plugin[]).map((plugin) => ({
    plugin,
    options: {},
    origin: plugin.name,
  }));
  const runtime = await createRuntime(config, { log: createLogger("error", () => {}), plugins });

  await runtime.start();
  await runtime.createFirstKeys((keys) => (key = keys.agent));
  const bodies = Array.from({ length: amount }, body);
  const before = process.cpuUsage();
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < amount) {
        const response = await runtime.fetch(
          new Request("http://bench/v1/actions", {
            method: "POST",
            headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
            body: bodies[next++] as string,
          }),
        );
        const text = await response.text();
        if (!response.ok) throw new Error(text);
      }
    }),
  );
  const { user, system } = process.cpuUsage(before);
  await runtime.stop();
  return (user + system) / amount;
}

const timed = async (work: () => Promise<void>): Promise<string> => {
  const [wall, cpu] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return `${((performance.now() - wall) / 1000).toFixed(1)} s (${((user + system) / 1e6).toFixed(1)} s of CPU)`;
};

async function audited(title: string): Promise<number> {
  const storage = openable();
  await storage.open({ readOnly: true });
  const { faults, size } = await auditStore(storage, (await storage.meta("log_vkey")) ?? undefined);
  await storage.close();
  out(`${title}: ${size} entries, ${faults.length === 0 ? "the audit passes" : faults.join("; ")}`);
  if (faults.length > 0) process.exitCode = 1;
  return size;
}

try {
  const each = await fill(ACTIONS);
  out(`${url === null ? "SQLite" : "Postgres"}: ${each.toFixed(0)} µs of CPU a decision`);
  let storage = openable();
  await storage.open();
  const { size } = await storage.head();
  await storage.close();
  await show("before the upkeep", size);
  await audited("before the upkeep");
  storage = openable();
  await storage.open();
  let pieces = 0;
  let longest = 0;
  const upkeep = await timed(async () => {
    for (let done = 1; done > 0; pieces++) {
      const before = performance.now();
      done = (await storage.upkeep?.(250)) ?? 0;
      longest = Math.max(longest, performance.now() - before);
    }
  });
  await storage.close();
  out(`\nthe upkeep: ${upkeep}, in ${pieces} pieces, the longest ${longest.toFixed(0)} ms`);
  await show("after it", size);
  await audited("after it");
} finally {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}
