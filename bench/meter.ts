/**
 * Measures the cost of a decision other than elapsed time: CPU of the service and of the database, transactions,
 * statements, rows and bytes. CPU is the kernel's count of user and system time, which is valid even if other programs
 * use the machine.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { loadSqlite } from "../plugins/storage-sqlite/load-library.ts";
import type { Counts } from "./counters.ts";
import type { Server } from "./load.ts";

/** Totals since the start. NaN if this machine or this server does not report them. */
export interface Reading {
  /** Microseconds of CPU. */
  service: number;
  database: number;
  batches: number;
  statements: number;
  /** Rows that were inserted, updated or deleted, without those of triggers and of sub-statements. */
  rows: number;
  /** Size of the database on disk. */
  bytes: number;
  /** Bytes that the service has written to the disk. */
  written: number;
  /** Microseconds for which the lock of the ledger's head was held. */
  locked: number;
}

export interface Meter {
  read(): Promise<Reading>;
  end?(): Promise<void>;
}

/** Microseconds in one of the kernel's ticks. */
const TICK = 10_000;

/**
 * Returns the user and system time of a process with its threads, in microseconds; NaN without /proc.
 * @param children adds the time of exited child processes
 */
export function cpuOf(pid: number | undefined, children = false): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The process name, in brackets, can contain spaces.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // utime, stime, cutime, cstime: fields 14 to 17 of proc(5).
    return fields.slice(11, children ? 15 : 13).reduce((sum, field) => sum + Number(field), 0) * TICK;
  } catch {
    return NaN;
  }
}

/** Returns the bytes that a process has written to the disk, which excludes files in memory; NaN without /proc. */
export function writtenBy(pid: number | undefined): number {
  try {
    return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
  } catch {
    return NaN;
  }
}

/** Returns the resident memory of a process in MiB. */
export function memoryOf({ child }: Server): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024;
  } catch {
    return NaN;
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/**
 * Reads the costs of a service with a SQLite store.
 * @param file name of the store in the data folder; null if there is none
 */
export function sqliteMeter(server: Server, data: string, file: string | null): Meter {
  return {
    async read() {
      const counts = file === null ? null : await countsOf(server);
      return {
        service: cpuOf(server.child.pid),
        database: 0,
        ...(counts === null ? { batches: NaN, statements: NaN, rows: NaN } : totals(counts)),
        bytes: file === null ? NaN : await sqliteBytes(join(data, file)),
        written: writtenBy(server.child.pid),
        locked: NaN,
      };
    },
  };
}

/**
 * Reads the costs of services with a Postgres database.
 * @param database on a server on this machine with pg_stat_statements
 */
export async function postgresMeter(servers: readonly Server[], database: string): Promise<Meter> {
  const sql = postgres(database, { max: 1, onnotice: () => {} });
  await sql`create extension if not exists pg_stat_statements`;
  const [backend] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const postmaster = parentOf(backend?.pid ?? NaN);
  return {
    async read() {
      const rows = await sql<{ query: string; calls: number; rows: number }[]>`
        select query, calls::float8 as calls, rows::float8 as rows from pg_stat_statements
        where dbid = (select oid from pg_database where datname = current_database())
          and query not like '%pg_stat_statements%'`;
      const [size] = await sql<{ bytes: number }[]>`select pg_database_size(current_database())::float8 as bytes`;
      return {
        service: sum(servers.map(({ child }) => cpuOf(child.pid))),
        database: sum([cpuOf(postmaster, true), ...childrenOf(postmaster).map((pid) => cpuOf(pid))]),
        ...totals(
          Object.fromEntries(
            rows.map(({ query, calls, rows: of }) => [query, { calls, rows: /^\s*select/i.test(query) ? 0 : of }]),
          ),
        ),
        bytes: size?.bytes ?? NaN,
        written: NaN,
        locked: sum(await Promise.all(servers.map(lockedOf))),
      };
    },
    end: () => sql.end(),
  };
}

/**
 * Returns the difference between two readings, divided by `decisions`. `batches` becomes the number of decisions in
 * each batch.
 */
export function perDecision(before: Reading, after: Reading, decisions: number): Reading {
  const each = (name: keyof Reading): number => (after[name] - before[name]) / decisions;
  return {
    service: each("service"),
    database: each("database"),
    batches: 1 / each("batches"),
    statements: each("statements"),
    rows: each("rows"),
    bytes: each("bytes"),
    written: each("written"),
    locked: each("locked"),
  };
}

/** A batch is a transaction that updates the ledger's head once. */
function totals(counts: Counts): Pick<Reading, "batches" | "statements" | "rows"> {
  const all = Object.entries(counts);
  const heads = all.filter(([sql]) => /\bupdate "?ledger_head\b/i.test(sql));
  return {
    batches: sum(heads.map(([, { calls }]) => calls)),
    statements: sum(all.map(([, { calls }]) => calls)),
    rows: sum(all.map(([, { rows }]) => rows)),
  };
}

/** Returns NaN for a server that does not export it, or whose key may not read metrics. */
async function lockedOf({ url, key }: Server): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${key}` } });
  const seconds = /^assent_ledger_lock_held_seconds_sum (\S+)$/m.exec(await response.text())?.[1];
  return Number(seconds) * 1_000_000;
}

async function countsOf({ child }: Server): Promise<Counts> {
  const answer = new Promise<string>((resolve) => {
    let text = "";
    const take = (chunk: Buffer): void => {
      text += chunk.toString();
      if (!text.endsWith("\n")) return;
      child.stdout?.off("data", take);
      resolve(text);
    };
    child.stdout?.on("data", take);
  });
  child.stdin?.write("\n");
  return JSON.parse(await answer) as Counts;
}

async function sqliteBytes(path: string): Promise<number> {
  const { DatabaseSync } = await loadSqlite();
  const db = new DatabaseSync(path);
  try {
    const of = (pragma: string): number =>
      Number((db.prepare(`pragma ${pragma}`).all()[0] as Record<string, number>)[pragma]);
    return of("page_count") * of("page_size");
  } finally {
    db.close();
  }
}

function parentOf(pid: number): number {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  } catch {
    return NaN;
  }
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && parentOf(Number(name)) === pid)
      .map(Number);
  } catch {
    return [];
  }
}
