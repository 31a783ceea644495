/**
 * A new store with BENCH_ACTIONS actions of the last 30 days (10,000,000 when absent): the time of starts, of lists, of a
 * backup, of an audit and of an erasure, and the bytes per action. With `DATABASE_URL=start` on a Postgres that it starts
 * itself. Goals at 10,000,000 actions: a start under 5 s, a list under 50 ms. BENCH_AUDIT_SECONDS stops the audit after
 * this time. BENCH_STORE names a folder that keeps a filled SQLite store for the next run.
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import postgres from "postgres";
import { startPostgres } from "../test/support/postgres.ts";
import { ASSENT } from "../test/support/process.ts";
import { fillStore, policiesOf, prepareFolder, refundBody } from "./fill.ts";
import { end, start, type Server } from "./load.ts";
import { cpuOf } from "./meter.ts";

const ACTIONS = Number(process.env["BENCH_ACTIONS"] ?? 10_000_000);
/** The newest actions, which are pending. */
const PENDING = Math.min(10_000, Math.floor(ACTIONS / 100));
const AUDIT_SECONDS = Number(process.env["BENCH_AUDIT_SECONDS"] ?? Infinity);
const KEPT = process.env["BENCH_STORE"];
const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const DAY = 86_400_000;

/** Values for lists: one action in the middle, and the times of the first action and of now. */
interface Filled {
  id: string;
  since: string;
  until: string;
}

const middle = Math.floor(ACTIONS / 2);
const MIDDLE = Buffer.from(`actions:${middle}`).toString("base64url");

const LISTS: Readonly<Record<string, (store: Filled) => string>> = {
  "actions, newest 50": () => "/v1/actions?limit=50",
  "actions, from the middle": () => `/v1/actions?limit=50&cursor=${MIDDLE}`,
  "actions of an agent": () => "/v1/actions?limit=50&agent_id=support-7",
  "actions of an unknown agent": () => "/v1/actions?limit=50&agent_id=nobody",
  "actions of a tool": () => "/v1/actions?limit=50&tool=stripe",
  "actions of a status": () => "/v1/actions?limit=50&status=denied",
  "actions of an agent and a status": () => "/v1/actions?limit=50&agent_id=support-99&status=pending_approval",
  "actions since a time": ({ since }) => `/v1/actions?limit=50&since=${since}`,
  "actions of 30 days": ({ since, until }) => `/v1/actions?limit=50&since=${since}&until=${until}`,
  "search with many matches": () => "/v1/actions?limit=50&q=refund",
  "search with one match": () => `/v1/actions?limit=50&q=o-${ACTIONS - PENDING - 49}`,
  "actions of a day and an agent": ({ since }) =>
    `/v1/actions?limit=50&agent_id=support-7&since=${since}&until=${new Date(Date.parse(since) + DAY).toISOString()}`,
  "pending, by deadline": () => "/v1/approvals?limit=50",
  "pending, newest": () => "/v1/approvals?limit=50&sort=newest",
  "pending, search": () => "/v1/approvals?limit=50&q=c-99",
  "one action": ({ id }) => `/v1/actions/${id}`,
  "timeline of an action": ({ id }) => `/v1/actions/${id}/events`,
  "events, from the middle": () => `/v1/events/page?after=${middle}&limit=50`,
  "analytics of 24 hours": ({ until }) => analytics(until, 1),
  "analytics of 30 days": ({ until }) => analytics(until, 30),
};
const STARTS = 3;
const REPEATS = 20;
/** Every tenth action is denied, so that it can be erased at once. An allowed action may still start. */
const DENIED_AGENT = "retired-agent";
/**
 * Settings of Postgres. With the defaults, which are meant for small machines, checkpoints would run without a pause.
 */
const SETTINGS = ["shared_buffers=1GB", "max_wal_size=8GB", "checkpoint_timeout=15min"];

const analytics = (until: string, days: number): string =>
  `/v1/analytics?since=${new Date(Date.parse(until) - days * DAY).toISOString()}&until=${until}`;

function bodyOf(n: number) {
  if (n >= ACTIONS - PENDING) return refundBody(n, 101 + (n % 900));
  return n % 10 === 0 ? { ...refundBody(n, 1), agent_id: DENIED_AGENT, tool: "none" } : refundBody(n, 1 + (n % 100));
}

const isPostgres = process.env["DATABASE_URL"] === "start";
delete process.env["DATABASE_URL"];
const folder = KEPT ?? mkdtempSync(join(tmpdir(), "assent-bench-"));
const server = isPostgres ? await startPostgres({ settings: SETTINGS }) : null;
const database = (await server?.database()) ?? null;
const env = { ASSENT_ADMIN_KEY: ADMIN, ...(database === null ? {} : { DATABASE_URL: database }) };
const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
const print = (name: string, value: string): boolean => process.stdout.write(`${name.padEnd(34)}${value}\n`);
const seconds = (from: number): number => (performance.now() - from) / 1000;

/** Returns the size of the store on disk. */
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

const spread = (times: number[], digits: number): string => {
  times.sort((a, b) => a - b);
  return `best ${times[0]?.toFixed(digits)}, p50 ${times[times.length >> 1]?.toFixed(digits)}, max ${times.at(-1)?.toFixed(digits)}`;
};

/**
 * Measures one page of a list: its times, and the CPU time of the service, in milliseconds. Other work on the machine
 * hardly affects the CPU time.
 */
async function timeOfList(service: Server, path: string): Promise<string> {
  const times: number[] = [];
  const before = cpuOf(service.child.pid);
  for (let i = 0; i < REPEATS; i++) {
    const from = performance.now();
    await get(service, path);
    times.push(performance.now() - from);
  }
  const cpu = (cpuOf(service.child.pid) - before) / 1000 / REPEATS;
  return `${spread(times, 1)} ms, CPU ${cpu.toFixed(1)}`;
}

const commandEnv = {
  ...process.env,
  ...env,
  ASSENT_DATA: folder,
  ASSENT_POLICIES: policiesOf(folder),
  ASSENT_STATE: join(folder, "state"),
};

/** Runs an audit, and prints the rate of each part. Throws if it finds a fault. */
async function audit(): Promise<void> {
  const child = spawn(process.execPath, [...ASSENT, "audit"], {
    env: commandEnv,
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const parts = new Map<string, { from: number; to: number; done: number }>();
  const others: string[] = [];
  let from = performance.now();
  createInterface(child.stderr).on("line", (line) => {
    const [, part, percent, total] = /^(.+): (\d+) % of (\d+)$/.exec(line) ?? [];
    if (part === undefined) return void others.push(line);
    const to = performance.now();
    parts.set(part, { from: parts.get(part)?.from ?? from, to, done: (Number(percent) / 100) * Number(total) });
    from = to;
  });
  const timer = AUDIT_SECONDS === Infinity ? undefined : setTimeout(() => child.kill(), AUDIT_SECONDS * 1000);
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.once("close", (...ended) => resolve(ended)),
  );
  clearTimeout(timer);
  if (signal === null && code !== 0) throw new Error(`the audit ended with ${code}: ${others.join("; ")}`);
  for (const [part, { from: begun, to, done }] of parts)
    if (done > 1000) print(`audit, ${part}`, `${((done * 1000) / (to - begun)).toFixed(0)} a second (${done})`);
  print("audit", signal === null ? "no fault" : `stopped after ${AUDIT_SECONDS} s`);
}

/** Erases denied actions with one request, which examines at most 5,000 actions. */
async function erase(service: Server): Promise<string> {
  const from = performance.now();
  const body = JSON.stringify({ agent_id: DENIED_AGENT, dry_run: false, reason: "benchmark" });
  const answer = await fetch(`${service.url}/v1/erasures`, { method: "POST", headers, body });
  const { erased } = (await answer.json()) as { erased: number };
  return `${(erased / seconds(from)).toFixed(0)} a second (${erased} erased)`;
}

/** Returns the speed of a backup in MiB per second. */
async function timeOfBackup(stored: number): Promise<string> {
  const backup = join(folder, "backup");
  const begun = performance.now();
  if (database === null)
    execFileSync(process.execPath, [...ASSENT, "backup", backup], { env: commandEnv, cwd: folder, stdio: "ignore" });
  else execFileSync("pg_dump", ["--format=custom", "--file", backup, database], { stdio: "inherit" });
  const took = seconds(begun);
  rmSync(backup, { recursive: true, force: true });
  return `${(stored / 2 ** 20 / took).toFixed(0)} MiB/s (${took.toFixed(0)} s)`;
}

/** Starts the service several times. Prints the times, and returns the last service. */
async function timeStarts(): Promise<Server> {
  const times: number[] = [];
  const cpu: number[] = [];
  for (;;) {
    const from = performance.now();
    const started = await start("service", folder, env, { policies: policiesOf(folder) });
    await get(started, "/readyz");
    times.push(seconds(from));
    cpu.push(cpuOf(started.child.pid) / 1e6);
    if (times.length === STARTS) {
      print("start until ready, s", spread(times, 2));
      print("start until ready, s of CPU", spread(cpu, 2));
      return started;
    }
    await end(started);
  }
}

async function timeLists(service: Server): Promise<void> {
  const page = (await get(service, `/v1/actions?limit=1&cursor=${MIDDLE}`)) as { actions: { id: string }[] };
  const until = Date.now();
  const store = {
    id: page.actions[0]?.id ?? "",
    since: new Date(until - 30 * DAY).toISOString(),
    until: new Date(until).toISOString(),
  };
  for (const [name, path] of Object.entries(LISTS)) print(name, `${await timeOfList(service, path(store))}`);
}

const loads = (): string =>
  loadavg()
    .map((load) => load.toFixed(1))
    .join(", ");

async function fill(): Promise<void> {
  if (existsSync(join(folder, "filled"))) return;
  const from = performance.now();
  let shown = 0;
  prepareFolder(folder);
  await fillStore(
    { data: folder, adminKey: ADMIN, database },
    { count: ACTIONS, last: PENDING, body: bodyOf },
    (done) => {
      if (done - shown < 250_000) return;
      shown = done;
      process.stderr.write(`filled ${done} after ${seconds(from).toFixed(0)} s\n`);
    },
  );
  print("filling", `${seconds(from).toFixed(0)} s, ${(ACTIONS / seconds(from)).toFixed(0)} actions a second`);
  if (database === null) writeFileSync(join(folder, "filled"), "");
}

let service: Server | null = null;
try {
  print(isPostgres ? "Postgres" : "SQLite", `${ACTIONS} actions, ${PENDING} of them pending`);
  await fill();
  print("load of the machine", loads());
  service = await timeStarts();
  await timeLists(service);
  const stored = await bytes();
  print("bytes an action", (stored / ACTIONS).toFixed(0));
  print("erasure", await erase(service));
  await end(service);
  service = null;
  print("load of the machine", loads());
  print(database === null ? "backup" : "backup (pg_dump)", await timeOfBackup(stored));
  await audit();
  print("load of the machine", loads());
} finally {
  if (service !== null) await end(service);
  await server?.stop();
  if (KEPT === undefined) rmSync(folder, { recursive: true, force: true });
}
