/**
 * SQLite against Postgres, one, two and four processes on one Postgres, and each against the bare limit of the same
 * store (reference.ts: the same HTTP adapter and the same batches by the same driver, with no logic). One run.
 */
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "../test/support/postgres.ts";
import { end, mean, measure, start, type Measured, type Server } from "./load.ts";

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 8);
const CONNECTIONS = [1, 32, 128];
const FLEETS = [1, 2, 4];

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const postgres = await startPostgres();
const shared = {
  ASSENT_SECRET: "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU",
  ASSENT_LOG_KEY: generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string,
  ASSENT_PERMIT_KEY: generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string,
  ASSENT_LOG_ORIGIN: "bench.test/log",
  ASSENT_ADMIN_KEY: `assent-test-admin-${"0".repeat(32)}`,
};
const out = (line: string): boolean => process.stdout.write(`${line}\n`);
out("connections  what                      req/s   p50 ms   p95 ms   p99 ms");

async function compare(name: string, ours: Server[], bare: Server, bareName: string): Promise<void> {
  for (const servers of [ours, [bare]]) await measure(servers, 32, 2);
  for (const connections of CONNECTIONS) {
    const parts: Record<"ours" | "bare", Measured[]> = { ours: [], bare: [] };
    for (let round = 0; round < 2; round++) {
      parts.ours.push(await measure(ours, connections, SECONDS / 2));
      parts.bare.push(await measure([bare], connections, SECONDS / 2));
    }
    const [measured, limit] = [mean(parts.ours), mean(parts.bare)];
    out(row(connections, name, measured, `${((measured.rps / limit.rps) * 100).toFixed(0)} % of ${bareName}`));
    out(row(connections, bareName, limit, ""));
  }
  await Promise.all([...ours, bare].map(end));
}

try {
  const here = (name: string): string => mkdtempSync(join(folder, name));
  await compare(
    "SQLite, 1 process",
    [await start("./service.ts", here("sqlite"))],
    await start("./reference.ts", here("bare")),
    "bare SQLite",
  );
  for (const processes of FLEETS) {
    const env = { ...shared, DATABASE_URL: await postgres.database() };
    const ours: Server[] = [];
    for (let i = 0; i < processes; i++) ours.push(await start("./service.ts", here("postgres"), env));
    const bare = await start("./reference.ts", here("bare"), { DATABASE_URL: await postgres.database() });
    await compare(`Postgres, ${processes} ${processes === 1 ? "process" : "processes"}`, ours, bare, "bare Postgres");
  }
} finally {
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}

function row(connections: number, name: string, m: Measured, note: string): string {
  const cell = (n: number): string => n.toFixed(1).padStart(9);
  return `${String(connections).padStart(11)}  ${name.padEnd(22)}${m.rps.toFixed(0).padStart(9)}${cell(m.p50)}${cell(m.p95)}${cell(m.p99)}   ${note}`;
}
