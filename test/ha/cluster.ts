/**
 * A Patroni cluster with the configuration in deploy/patroni: etcd, three members, and haproxy in front of the primary.
 * Everything listens on separate loopback addresses, on the ports that the configuration names.
 *
 * Every connection to a member passes a link that a test can interrupt. There are three groups of links: from the
 * member's Patroni to etcd, from the other members to it, and from clients (the services and haproxy) to it.
 */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chownSync, closeSync, mkdirSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { findProgram } from "../support/proxy.ts";
import { postgresTool } from "../support/postgres.ts";
import { ROOT } from "../support/runtimes.ts";
import { until } from "../support/wait.ts";
import { openLink, type Link } from "../support/link.ts";

const CONFIGURATION = join(ROOT, "deploy/patroni");
const MEMBERS = [1, 2, 3];
const [POSTGRES, REST, ETCD] = [5432, 8008, 2379];
const PASSWORD = "ha-test";
/** Name of the cluster, which its keys in etcd contain. */
const SCOPE = "assent";
/** Number of polls, 200 ms apart, before `restartStalePatroni` is called for a cluster that has not recovered. */
const POLLS_BEFORE_RESTART = 300;

/** Returns the path of a Patroni program: the one that HA_PATRONI names, or the installed one. */
const programOf = (name: string): string | null =>
  name === "patroni" ? (process.env["HA_PATRONI"] ?? findProgram(name)) : findProgram(name);

/** Returns the reason why the test cannot run here, or null if it can. */
export function missingPrograms(): string | null {
  const missing = ["patroni", "etcd", "haproxy"].filter((name) => programOf(name) === null);
  if (postgresTool("pg_rewind") === null) missing.push("postgresql");
  return missing.length === 0 ? null : `install ${missing.join(", ")} (Debian: patroni etcd-server haproxy postgresql)`;
}

/** Returns the versions of the programs that the cluster consists of, in one line. */
export function versions(): string {
  const firstLine = (program: string, flag: string): string =>
    (execFileSync(program, [flag], { encoding: "utf8" }).split("\n")[0] as string).trim();
  return [
    firstLine(programOf("patroni") as string, "--version"),
    firstLine(programOf("etcd") as string, "--version"),
    firstLine(programOf("haproxy") as string, "-v"),
    firstLine(postgresTool("postgres") as string, "--version"),
  ].join("; ");
}

/** A member in Patroni's response to `GET /cluster`. */
interface MemberState {
  name: string;
  role: string;
  state: string;
  timeline?: number;
}

export interface Member {
  name: string;
  /** Address on which its Postgres listens, without a link in between. */
  host: string;
  links: { etcd: Link[]; peers: Link[]; clients: Link[] };
  patroni: ChildProcess;
  data: string;
}

export class Cluster {
  readonly members: Member[] = [];
  private readonly folder: string;
  /** The second byte of all addresses is random, so that concurrent runs do not collide. */
  private readonly net = 16 + Math.floor(Math.random() * 200);
  private readonly children: ChildProcess[] = [];
  private readonly user = userOfPostgres();

  /** @param folder receives the members' data and logs, and is owned by the user `postgres` afterwards */
  constructor(folder: string) {
    this.folder = folder;
    if (this.user.uid !== undefined && this.user.gid !== undefined) chownSync(folder, this.user.uid, this.user.gid);
  }

  async start(): Promise<void> {
    const etcd = this.address("etcd", 0);
    this.launch("etcd", "etcd", [
      "--name=etcd1",
      `--data-dir=${join(this.folder, "etcd")}`,
      `--listen-client-urls=http://${etcd}:${ETCD}`,
      `--advertise-client-urls=http://${etcd}:${ETCD}`,
      `--listen-peer-urls=http://${etcd}:2380`,
      `--initial-advertise-peer-urls=http://${etcd}:2380`,
      `--initial-cluster=etcd1=http://${etcd}:2380`,
    ]);
    await until("etcd answers", () => answers(`http://${etcd}:${ETCD}/health`));
    for (const index of MEMBERS) {
      this.members.push(await this.startMember(index));
      // The first member creates the cluster.
      if (index === 1) await until("there is a primary", async () => (await this.primary()) !== null, 200);
    }
    this.launch("haproxy", "haproxy", ["-db", "-f", join(CONFIGURATION, "haproxy.cfg")], {
      DATABASE_LISTEN: this.address("haproxy", 0),
      ...Object.fromEntries(MEMBERS.map((index) => [`DATABASE_${index}`, this.address("clients", index)])),
    });
    await this.untilWhole();
    await this.run((await this.primary()) as Member, "postgres", async (client) => {
      await client.unsafe(`create role assent login password '${PASSWORD}'`);
      await client.unsafe("create database assent owner assent");
    });
  }

  /** URLs of the service's database: one through haproxy, and one that lists every member. */
  urls(): { haproxy: string; hosts: string } {
    const hosts = MEMBERS.map((index) => `${this.address("clients", index)}:${POSTGRES}`).join(",");
    const url = (where: string): string => `postgres://assent:${PASSWORD}@${where}/assent`;
    return { haproxy: url(`${this.address("haproxy", 0)}:${POSTGRES}`), hosts: url(hosts) };
  }

  /** Connects to a member directly as superuser, without a link in between. */
  connect(member: Member, database: string, connectTimeout = 10): postgres.Sql {
    return postgres({
      host: member.host,
      port: POSTGRES,
      database,
      user: "postgres",
      password: PASSWORD,
      max: 1,
      // Otherwise postgres.js queries the types of arrays by itself, and a failure of that query ends this process.
      fetch_types: false,
      connect_timeout: connectTimeout,
      onnotice: () => undefined,
    });
  }

  async run<T>(member: Member, database: string, work: (client: postgres.Sql) => Promise<T>): Promise<T> {
    const client = this.connect(member, database);
    try {
      return await work(client);
    } finally {
      await client.end({ timeout: 1 });
    }
  }

  /** The member that holds the leader key and is a primary; null if there is none. */
  async primary(): Promise<Member | null> {
    for (const member of this.members) if (await answers(`http://${member.host}:${REST}/primary`)) return member;
    return null;
  }

  /** The members as etcd knows them; empty if no member answers. */
  async states(): Promise<MemberState[]> {
    for (const member of this.members) {
      try {
        const answer = await fetch(`http://${member.host}:${REST}/cluster`, { signal: AbortSignal.timeout(1000) });
        return ((await answer.json()) as { members: MemberState[] }).members;
      } catch {
        // Another member may respond.
      }
    }
    return [];
  }

  /** Resolves when one member leads and both others follow it on its timeline, one of them synchronously. */
  async untilWhole(): Promise<void> {
    let states: MemberState[] = [];
    let polls = 0;
    await until(
      () => `the cluster is whole: ${JSON.stringify(states)}`,
      async () => {
        states = await this.states();
        const leader = states.find(({ role }) => role === "leader");
        if (++polls % POLLS_BEFORE_RESTART === 0 && leader !== undefined) await this.restartStalePatroni(leader.name);
        return (
          states.length === MEMBERS.length &&
          leader !== undefined &&
          states.every(({ state, timeline }) => /running|streaming/.test(state) && timeline === leader.timeline) &&
          states.some(({ role }) => role === "sync_standby")
        );
      },
      200,
    );
  }

  /**
   * Removes the key that names the synchronous standby, and restarts the leader's Patroni, as an operator does. Patroni
   * before 3.1 can keep a stale copy of etcd's keys after a pause, and then never names a synchronous standby
   * (https://github.com/patroni/patroni/pull/2783). Postgres keeps running.
   */
  private async restartStalePatroni(name: string): Promise<void> {
    const member = this.members.find((other) => other.name === name);
    if (member === undefined) return;
    process.stdout.write(`  ${name} has named no synchronous standby for a minute; its Patroni is restarted\n`);
    const ended = new Promise((resolve) => member.patroni.once("exit", resolve));
    signal(member.patroni.pid as number, "SIGKILL");
    await ended;
    const key = Buffer.from(`/service/${SCOPE}/sync`).toString("base64");
    await fetch(`http://${this.address("etcd", 0)}:${ETCD}/v3/kv/deleterange`, {
      method: "POST",
      body: JSON.stringify({ key }),
    });
    this.restart(member);
  }

  /** Requests a switchover to another member from Patroni. */
  async switchover(from: Member): Promise<void> {
    const answer = await fetch(`http://${from.host}:${REST}/switchover`, {
      method: "POST",
      body: JSON.stringify({ leader: from.name }),
    });
    if (!answer.ok) throw new Error(`the switchover failed: ${await answer.text()}`);
  }

  /** Restarts a member whose Patroni has exited. */
  restart(member: Member): void {
    member.patroni = this.launchPatroni(MEMBERS[this.members.indexOf(member)] as number);
  }

  async stop(): Promise<void> {
    const ended = this.children.map(
      (child) =>
        new Promise<void>((resolve) => {
          if (child.exitCode !== null || child.signalCode !== null) return resolve();
          child.once("exit", () => resolve());
          child.kill("SIGKILL");
        }),
    );
    await Promise.all(ended);
    // After Patroni, which could otherwise start Postgres again. What it started, such as pg_rewind, can start more.
    await until("all processes of the cluster have ended", () => {
      const pids = this.processes();
      for (const pid of pids) signal(pid, "SIGKILL");
      return pids.length === 0;
    });
    for (const { links } of this.members)
      for (const link of [...links.etcd, ...links.peers, ...links.clients]) await link.close();
  }

  /** Ids of all processes that run in the cluster's folder. */
  private processes(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && workingFolder(name)?.startsWith(this.folder) === true)
      .map(Number);
  }

  private address(group: "etcd" | "members" | "peers" | "clients" | "links" | "haproxy", index: number): string {
    const third = ["etcd", "members", "peers", "clients", "links", "haproxy"].indexOf(group);
    return `127.${this.net}.${third}.${index + 1}`;
  }

  private async startMember(index: number): Promise<Member> {
    const host = this.address("members", index);
    const link = (from: string, to: string, port: number): Promise<Link> =>
      openLink({ host: from, port }, { host: to, port });
    const links = {
      etcd: [await link(this.address("links", index), this.address("etcd", 0), ETCD)],
      peers: [
        await link(this.address("peers", index), host, POSTGRES),
        await link(this.address("peers", index), host, REST),
      ],
      clients: [
        await link(this.address("clients", index), host, POSTGRES),
        await link(this.address("clients", index), host, REST),
      ],
    };
    return { name: `db${index}`, host, links, patroni: this.launchPatroni(index), data: this.data(index) };
  }

  private data(index: number): string {
    return join(this.folder, `db${index}`);
  }

  private launchPatroni(index: number): ChildProcess {
    const [host, peers] = [this.address("members", index), this.address("peers", index)];
    const bin = join(postgresTool("postgres") as string, "..");
    return this.launch(`patroni-db${index}`, "patroni", [join(CONFIGURATION, "patroni.yml")], {
      PATRONI_SCOPE: SCOPE,
      PATRONI_NAME: `db${index}`,
      PATRONI_ETCD3_HOSTS: `${this.address("links", index)}:${ETCD}`,
      // Otherwise Patroni would connect to the addresses that etcd announces, bypassing the link.
      PATRONI_ETCD3_USE_PROXIES: "true",
      PATRONI_POSTGRESQL_LISTEN: `${host}:${POSTGRES}`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `${peers}:${POSTGRES}`,
      PATRONI_POSTGRESQL_DATA_DIR: this.data(index),
      PATRONI_POSTGRESQL_BIN_DIR: bin,
      PATRONI_POSTGRESQL_PGPASS: join(this.folder, `pgpass${index}`),
      PATRONI_RESTAPI_LISTEN: `${host}:${REST}`,
      PATRONI_RESTAPI_CONNECT_ADDRESS: `${peers}:${REST}`,
      PATRONI_SUPERUSER_USERNAME: "postgres",
      PATRONI_SUPERUSER_PASSWORD: PASSWORD,
      PATRONI_REPLICATION_USERNAME: "replicator",
      PATRONI_REPLICATION_PASSWORD: PASSWORD,
      PATRONI_REWIND_USERNAME: "rewinder",
      PATRONI_REWIND_PASSWORD: PASSWORD,
    });
  }

  private launch(name: string, program: string, args: string[], env: Record<string, string> = {}): ChildProcess {
    mkdirSync(this.folder, { recursive: true });
    const log = openSync(join(this.folder, `${name}.log`), "a");
    const child = spawn(programOf(program) as string, args, {
      ...this.user,
      cwd: this.folder,
      env: { PATH: process.env["PATH"], LC_ALL: "C", ...env },
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    this.children.push(child);
    return child;
  }
}

/** Process ids of a member's Postgres: the postmaster and its children. Empty if it does not run. */
export function postgresProcesses({ data }: Member): number[] {
  let postmaster: number;
  try {
    postmaster = Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0]);
    process.kill(postmaster, 0);
  } catch {
    return [];
  }
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === postmaster)
    .map(Number);
  return [postmaster, ...children];
}

/** Sends a signal to a member's Patroni and to all processes of its Postgres. */
export function signalMember(member: Member, name: NodeJS.Signals): void {
  // Patroni first, because it must not observe that its Postgres stopped.
  for (const pid of [member.patroni.pid as number, ...postgresProcesses(member)]) signal(pid, name);
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function workingFolder(pid: string): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return null;
  }
}

function parentOf(pid: string): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return null;
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(1000) });
    await answer.body?.cancel();
    return answer.status === 200;
  } catch {
    return false;
  }
}

/** Postgres refuses to run as root. */
function userOfPostgres(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }).trim());
  return { uid: idOf("-u"), gid: idOf("-g") };
}
