/**
 * A store that is filled to each of BENCH_SIZES actions: at each size the time of a start, of lists, of an audit and of a
 * backup, and the bytes per action; at the end the time to erase parameters. With `DATABASE_URL=start` on a Postgres that it
 * starts itself. Goals at 10,000,000 actions: a start under 5 s, a list under 50 ms.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { startPostgres } from "../test/support/postgres.ts";
import { ASSENT } from "../test/support/process.ts";
import { fillStore } from "./fill.ts";
import { end, POLICIES, start, type Server } from "./load.ts";
import { cpuOf } from "./meter.ts";
import sample from "./sample.json" with { type: "json" };

const SIZES = (process.env["BENCH_SIZES"] ?? "100000,1000000,10000000").split(",").map(Number);
const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const LISTS: Readonly<Record<string, (size: number) => string>> = {
  "newest 50": () => "/v1/actions?limit=50",
  "in the middle": (size) =>
    `/v1/actions?limit=50&cursor=${Buffer.from(`actions:${Math.floor(size / 2)}`).toString("base64url")}`,
  "of one agent": () => "/v1/actions?limit=50&agent_id=support-bot",
  "of an agent without actions": () => "/v1/actions?limit=50&agent_id=nobody",
  "of one status": () => "/v1/actions?limit=50&status=denied",
  pending: () => "/v1/actions?limit=50&status=pending_approval",
};
const REPEATS = 20;
/** Every tenth action is denied, and so can be erased at once: an allowed one may still start. */
const DENIED_AGENT = "retired-agent";
const DENIED = { ...sample, agent_id: DENIED_AGENT, tool: "none" };

const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
const isPostgres = process.env["DATABASE_URL"] === "start";
delete process.env["DATABASE_URL"];
const server = isPostgres ? await startPostgres() : null;
const database = (await server?.database()) ?? null;
const env = { ASSENT_ADMIN_KEY: ADMIN, ...(database === null ? {} : { DATABASE_URL: database }) };
const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
const print = (name: string, value: string): boolean => process.stdout.write(`${name.padEnd(34)}${value}\n`);
const seconds = (from: number): number => (performance.now() - from) / 1000;

/** Bytes of the store on the disk. */
async function bytes(): Promise<number> {
  if (database === null)
    return readdirSync(folder)
      .filter((name) => name.startsWith("assent.db"))
      .reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  const client = postgres(database, { max: 1 });
  const [row] = await client`select pg_database_size(current_database())::float8 as bytes`;
  await client.end();
  return Number(row?.["bytes"]);
}

async function get(service: Server, path: string): Promise<unknown> {
  const answer = await fetch(service.url + path, { headers });
  const body: unknown = await answer.json();
  if (!answer.ok) throw new Error(`${path} was answered with ${answer.status} ${JSON.stringify(body)}`);
  return body;
}

/** Median and worst time of one page, in milliseconds. */
async function timeOfList(service: Server, path: string): Promise<string> {
  const times: number[] = [];
  for (let i = 0; i < REPEATS; i++) {
    const from = performance.now();
    await get(service, path);
    times.push(performance.now() - from);
  }
  times.sort((a, b) => a - b);
  return `p50 ${times[REPEATS >> 1]?.toFixed(1)}, max ${times.at(-1)?.toFixed(1)}`;
}

function command(args: string[]): number {
  const from = performance.now();
  execFileSync(process.execPath, [...ASSENT, ...args], {
    env: {
      ...process.env,
      ...env,
      ASSENT_DATA: folder,
      ASSENT_POLICIES: POLICIES,
      ASSENT_STATE: join(folder, "state"),
    },
    stdio: "ignore",
  });
  return seconds(from);
}

/** Erases denied actions with one request, which examines at most 5,000 actions. */
async function erase(service: Server): Promise<string> {
  const from = performance.now();
  const body = JSON.stringify({ agent_id: DENIED_AGENT, dry_run: false, reason: "benchmark" });
  const answer = await fetch(`${service.url}/v1/erasures`, { method: "POST", headers, body });
  const { erased } = (await answer.json()) as { erased: number };
  return `${(erased / seconds(from)).toFixed(0)} a second (${erased} erased)`;
}

/** MiB a second of a backup. */
async function timeOfBackup(stored: number): Promise<string> {
  const backup = join(folder, "backup");
  const begun = performance.now();
  if (database === null) command(["backup", backup]);
  else execFileSync("pg_dump", ["--format=custom", "--file", backup, database], { stdio: "inherit" });
  const rate = `${(stored / 2 ** 20 / seconds(begun)).toFixed(0)} MiB/s`;
  rmSync(backup, { recursive: true, force: true });
  return rate;
}

let service: Server | null = null;
let actions = 0;
try {
  for (const size of SIZES) {
    print(isPostgres ? "Postgres" : "SQLite", `${size} actions`);
    const filling = performance.now();
    await fillStore(
      { data: folder, policies: POLICIES, adminKey: ADMIN, database },
      { from: actions, to: size, body: (n) => (n % 10 === 0 ? DENIED : sample) },
    );
    print("filling", `${((size - actions) / seconds(filling)).toFixed(0)} actions a second`);
    actions = size;
    const from = performance.now();
    service = await start("service", folder, env);
    await get(service, "/readyz");
    print("start until ready", `${seconds(from).toFixed(2)} s (CPU ${(cpuOf(service.child.pid) / 1e6).toFixed(2)} s)`);
    for (const [name, path] of Object.entries(LISTS))
      print(`list, ${name}`, `${await timeOfList(service, path(size))} ms`);
    const stored = await bytes();
    print("bytes an action", (stored / size).toFixed(0));
    print(database === null ? "backup" : "backup (pg_dump)", await timeOfBackup(stored));
    await end(service);
    service = null;
    const audited = command(["audit"]);
    print("audit", `${(size / audited).toFixed(0)} actions a second (${audited.toFixed(0)} s)`);
  }
  service = await start("service", folder, env);
  print("erasure", await erase(service));
} finally {
  if (service !== null) await end(service);
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}
