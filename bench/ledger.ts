/**
 * Grows a ledger to 1,000,000 entries through POST /v1/actions. At 10^4, 10^5 and 10^6 entries it measures the
 * throughput of the last part, the memory of the process, the time of a proof, and the size of the database. With
 * `DATABASE_URL=start` it uses a Postgres that it starts. Memory must not grow with the ledger.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { startPostgres } from "../test/support/postgres.ts";
import { end, measure, start } from "./load.ts";
import { memoryOf } from "./meter.ts";

const SIZES = (process.env["BENCH_SIZES"] ?? "10000,100000,1000000").split(",").map(Number);
const PROOFS = 500;
const ADMIN = `assent-test-admin-${"0".repeat(32)}`;

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const server =
  process.env["DATABASE_URL"] === "start" ? (delete process.env["DATABASE_URL"], await startPostgres()) : null;
const database = server === null ? null : await server.database();
const service = await start("service", folder, {
  ASSENT_ADMIN_KEY: ADMIN,
  ...(database === null ? {} : { DATABASE_URL: database }),
});
const auth = { authorization: `Bearer ${ADMIN}` };
const out = (line: string): boolean => process.stdout.write(`${line}\n`);

async function size(): Promise<number> {
  const note = await (await fetch(`${service.url}/v1/provenance/checkpoint`, { headers: auth })).text();
  return Number(note.split("\n")[1]);
}

/** Returns the milliseconds of proofs for entries from all parts of the ledger. */
async function proofs(): Promise<{ p50: number; p99: number }> {
  const hashes: string[] = [];
  const total = await size();
  for (let i = 0; i < PROOFS; i++) {
    const from = Math.floor((total * i) / PROOFS);
    const { events } = (await (
      await fetch(`${service.url}/v1/events/page?after=${Math.max(0, from - 1)}&limit=1`, {
        headers: auth,
      })
    ).json()) as { events: { hash: string }[] };
    if (events[0] !== undefined) hashes.push(events[0].hash);
  }
  const times: number[] = [];
  for (const hash of hashes) {
    const before = performance.now();
    const answer = await fetch(`${service.url}/v1/provenance/${hash}/proof`, { headers: auth });
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`a proof was answered with ${answer.status}`);
    times.push(performance.now() - before);
  }
  times.sort((a, b) => a - b);
  return { p50: times[Math.floor(times.length / 2)] ?? NaN, p99: times[Math.floor(times.length * 0.99)] ?? NaN };
}

/** Returns the size of the store on disk in MiB. */
async function stored(): Promise<number> {
  if (database === null)
    return (
      readdirSync(folder)
        .filter((name) => name.startsWith("assent.db"))
        .reduce((sum, name) => sum + statSync(join(folder, name)).size, 0) /
      (1 << 20)
    );
  const client = postgres(database, { max: 1 });
  const [row] = await client`select pg_database_size(current_database())::float8 as bytes`;
  await client.end();
  return Number(row?.["bytes"]) / (1 << 20);
}

out(`${database === null ? "SQLite" : "Postgres"}, 64 connections`);
out("entries      req/s   memory MiB   proof p50 ms   proof p99 ms   database MiB   bytes per entry");
out(`${"idle".padEnd(18)}${memoryOf(service).toFixed(0).padStart(13)}`);
try {
  await measure([service], 64, 0, { amount: 2000 });
  for (const target of SIZES) {
    const missing = target - (await size());
    const { rps } = missing > 0 ? await measure([service], 64, 0, { amount: missing }) : { rps: NaN };
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const held = memoryOf(service);
    const { p50, p99 } = await proofs();
    const mib = await stored();
    const cell = (n: number, digits: number, width: number): string => n.toFixed(digits).padStart(width);
    out(
      `${String(await size()).padEnd(9)}${cell(rps, 0, 9)}${cell(held, 0, 13)}${cell(p50, 2, 15)}${cell(p99, 2, 15)}${cell(mib, 0, 15)}${cell((mib * (1 << 20)) / (await size()), 0, 18)}`,
    );
  }
} finally {
  await end(service);
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}
