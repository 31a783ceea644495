/**
 * Two services under load on a real Patroni cluster, whose primary is killed, paused, disconnected and switched over.
 * Nothing that was acknowledged is lost or doubled, and there is one history. Prints how long decisions were interrupted.
 *
 *   HA_DISTURBANCES=20 HA_CLIENTS=8 npm run test:ha
 *
 * HA_PATRONI is the path of another Patroni than the installed one.
 * Needs patroni, etcd, haproxy and Postgres; runs on Linux, as root or as a user who may run Postgres. One service
 * connects through haproxy, the other with every member in its URL. ASSENT_TEST_KEEP=1 keeps the logs.
 */
import { AssertionError } from "node:assert";
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { ADMIN, sharedEnvironment } from "../support/deployment.ts";
import { ASSENT, startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { pause, until } from "../support/wait.ts";
import { Cluster, missingPrograms, versions, type Member } from "./cluster.ts";
import { plan, type Disturbance } from "./disturbances.ts";
import { History } from "./history.ts";
import { POLICY, startLoad, type Load } from "./load.ts";
import { preparePrimaryWatch, timelineOf, watchPrimary } from "./primary-watch.ts";

const DISTURBANCES = Number(process.env["HA_DISTURBANCES"] ?? 20);
const CLIENTS = Number(process.env["HA_CLIENTS"] ?? 8);
/** Longest time from a new primary's first commit to decisions. Milliseconds. */
const GOAL_AFTER_PRIMARY = 2_000;
const SERVICES = ["haproxy", "hosts"] as const;

interface Timing {
  disturbance: Disturbance;
  /** Milliseconds from the beginning until the new primary commits a write of this test. */
  primary: number;
  /** Milliseconds from the beginning until the end of the longest pause between decisions, by service. */
  decisions: number[];
}

/** Returns the end of the longest pause between decisions. The last decision before `begun` starts the first pause. */
function endOfPause(times: readonly number[], begun: number): number {
  const first = times.findLastIndex((time) => time < begun);
  let longest = { length: 0, end: begun };
  for (let i = Math.max(first, 0) + 1; i < times.length; i++) {
    const [end, length] = [times[i] as number, (times[i] as number) - (times[i - 1] as number)];
    if (length > longest.length) longest = { length, end };
  }
  return longest.end;
}

/** Returns true if every service has made at least `times` decisions since `since`. Throws if a client has failed. */
function decided(load: Load, since: number, times: number): boolean {
  const failure = load.failure();
  if (failure !== null) throw failure;
  return load.decisions.every((all) => all.filter((time) => time > since).length >= times);
}

/** Waits for a primary, because a busy machine can lose it between two disturbances. Returns its timeline, too. */
async function findPrimary(cluster: Cluster): Promise<{ primary: Member; timeline: number }> {
  let found: { primary: Member; timeline: number } | null = null;
  await until("there is a primary that answers", async () => {
    const primary = await cluster.primary();
    const timeline = primary === null ? null : await timelineOf(cluster, primary).catch(() => null);
    found = primary === null || timeline === null ? null : { primary, timeline };
    return found !== null;
  });
  return found as unknown as { primary: Member; timeline: number };
}

/** Does `work`, which needs a primary all the time. Repeats it if it fails because another member became the primary. */
async function withOnePrimary<T>(cluster: Cluster, work: () => Promise<T>): Promise<T> {
  for (;;) {
    await cluster.untilWhole();
    const { timeline } = await findPrimary(cluster);
    try {
      return await work();
    } catch (error) {
      if (error instanceof AssertionError || (await findPrimary(cluster)).timeline === timeline) throw error;
      process.stdout.write(
        `  the primary was lost without a disturbance: ${String(error).split("\n")[0]}; repeating\n`,
      );
    }
  }
}

/**
 * Begins the disturbance. Repeats this if the primary is lost before it has begun. Later errors are final: the
 * disturbance itself makes another member the primary, so they would all look like an unplanned loss.
 */
async function disturb(cluster: Cluster, load: Load, disturbance: Disturbance): Promise<Timing> {
  const { primary, watch, begun } = await withOnePrimary(cluster, async () => {
    const found = await findPrimary(cluster);
    const begun = performance.now();
    const watch = watchPrimary(cluster, found.timeline);
    try {
      await disturbance.begin(cluster, found.primary);
    } catch (error) {
      watch.stop();
      throw error;
    }
    return { primary: found.primary, watch, begun };
  });
  try {
    const accepted = await Promise.race([
      watch.accepted,
      pause(180_000).then(() => Promise.reject(new Error("no new primary in three minutes"))),
    ]);
    // Long enough to observe a second interruption.
    await until("decisions flow again at both services", () => decided(load, accepted, 10));
    await pause(3000);
    const decisions = load.decisions.map((times) => endOfPause(times, begun) - begun);
    return { disturbance, primary: accepted - begun, decisions };
  } finally {
    watch.stop();
    disturbance.end?.(cluster, primary);
  }
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`.padStart(8);

function row({ disturbance, primary, decisions }: Timing): string {
  const after = Math.max(...decisions) - primary;
  const isMet = Math.max(...decisions) <= disturbance.goal && after <= GOAL_AFTER_PRIMARY;
  return [
    disturbance.name.padEnd(36),
    seconds(primary),
    ...decisions.map(seconds),
    seconds(after),
    `  ${isMet ? "" : `goal: ${disturbance.goal / 1000} s, and ${GOAL_AFTER_PRIMARY / 1000} s after the new primary`}`,
  ].join(" ");
}

/** Runs the operator's audit command through the address that a service uses. */
async function audit(env: Record<string, string>, checkpoint: string): Promise<void> {
  const child = spawn(process.execPath, [...ASSENT, "audit", "--checkpoint", checkpoint], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  if (code !== 0) throw new Error(`assent audit ended with ${code}:\n${output}`);
}

async function agentKey(url: string): Promise<string> {
  const answer = await fetch(`${url}/v1/api-keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "agents", preset: "agent" }),
  });
  const made = (await answer.json()) as { key?: string };
  if (made.key === undefined) throw new Error(`no key was made: ${JSON.stringify(made)}`);
  return made.key;
}

async function main(folder: string, stopped: Promise<never>): Promise<number> {
  const database = join(folder, "cluster");
  mkdirSync(database, { mode: 0o755 });
  const cluster = new Cluster(database);
  const services: ServiceProcess[] = [];
  try {
    return await Promise.race([measure(folder, cluster, services), stopped]);
  } finally {
    for (const [i, service] of services.entries()) {
      writeFileSync(join(folder, `service-${SERVICES[i]}.log`), service.output());
      await Promise.race([stopProcess(service), pause(15_000)]);
      service.child.kill("SIGKILL");
    }
    await cluster.stop();
  }
}

async function measure(folder: string, cluster: Cluster, services: ServiceProcess[]): Promise<number> {
  await cluster.start();
  await withOnePrimary(cluster, () => preparePrimaryWatch(cluster));
  const urls = cluster.urls();
  mkdirSync(join(folder, "policies"));
  writeFileSync(join(folder, "policies/refunds.yaml"), POLICY);
  writeFileSync(join(folder, "assent.yaml"), "approvals: { trust_key_makers: true }\n");
  const shared = {
    ...sharedEnvironment("ha.test/log"),
    ASSENT_CONFIG: join(folder, "assent.yaml"),
    ASSENT_POLICIES: join(folder, "policies"),
  };
  const envs = SERVICES.map((name) => ({
    ...shared,
    DATABASE_URL: urls[name],
    ASSENT_DATA: join(folder, `data-${name}`),
  }));
  for (const env of envs) services.push(await withOnePrimary(cluster, () => startProcess(env)));
  const key = await withOnePrimary(cluster, () => agentKey((services[0] as ServiceProcess).url));
  const load = startLoad(
    services.map(({ url }) => url),
    key,
    CLIENTS,
  );
  const history = new History();
  const store = postgresStorage({ url: urls.hosts });
  await withOnePrimary(cluster, () => store.open({ readOnly: true }));
  await until("the load runs", () => decided(load, 0, 20));

  let missed = 0;
  const print = (text: string): void => void process.stdout.write(`${text}\n`);
  print(`${versions()}; Node ${process.versions.node}; ${cpus().length} cores`);
  print(`${"".padEnd(36)} new primary  decisions at the service    later than`);
  print(`${"disturbance".padEnd(36)}   writes    ${SERVICES.join("     ")}   the primary`);
  for (const disturbance of plan(DISTURBANCES)) {
    const timing = await disturb(cluster, load, disturbance);
    const line = row(timing);
    if (line.includes("goal:")) missed += 1;
    print(line);
    const { entries, checkpoints } = await withOnePrimary(cluster, async () => {
      const verified = await history.verify(store, load);
      const newest = join(folder, "checkpoint");
      writeFileSync(newest, [...load.checkpoints].at(-1) as string);
      await audit(envs[0] as Record<string, string>, newest);
      return verified;
    });
    print(
      `  ${entries} entries, ${load.acknowledged.size} acknowledged actions, ${checkpoints} signed checkpoints: one history; assent audit passes (load average ${(loadavg()[0] as number).toFixed(1)})`,
    );
  }
  await load.stop();
  const { entries } = await withOnePrimary(cluster, () => history.verify(store, load, true));
  await store.close();
  print(
    `${load.keys()} idempotency keys, ${load.keys()} actions, ${entries} entries; ${load.repeated()} requests were repeated. ${missed} of ${DISTURBANCES} missed a goal.`,
  );
  return missed === 0 ? 0 : 1;
}

const missing = missingPrograms();
if (missing !== null) {
  process.stderr.write(`This test cannot run here: ${missing}\n`);
  process.exit(2);
}
const folder = temporaryFolder("assent-ha-");
// The user `postgres` needs access to a folder inside it.
chmodSync(folder, 0o755);
let code = 1;
// A signal, or an error of a connection that no one waits for, must not leave the cluster running.
const stopped = new Promise<never>((_, reject) => {
  for (const event of ["uncaughtException", "unhandledRejection"])
    process.on(event, (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))));
  for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => reject(new Error(`stopped by ${name}`)));
});
try {
  code = await main(folder, stopped);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
} finally {
  if (process.env["ASSENT_TEST_KEEP"] === "1" || code !== 0) process.stderr.write(`Logs are in ${folder}\n`);
  else rmSync(folder, { recursive: true, force: true });
}
process.exit(code);
