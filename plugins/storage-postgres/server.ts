/** Checks, on every new connection, that it is safe to read from or write to the server. */
import { randomUUID } from "node:crypto";
import { StorageError } from "../../src/storage/index.ts";
import type { Session } from "./database-session.ts";

interface ServerChecks {
  /** Whether the caller only reads, so that the server's durability does not matter. */
  readOnly: boolean;
  mayBeStandby: boolean;
  /** Whether to accept a server that may lose commits that it has acknowledged. */
  acceptUnsafe: boolean;
  /** Returns the highest timeline among the servers that this process has used. */
  newestTimeline(): number;
}

const SETTINGS = `select pg_catalog.current_setting('session_replication_role') as triggers, pg_catalog.pg_is_in_recovery()::integer as standby, pg_catalog.current_setting('fsync') as fsync,
  pg_catalog.current_setting('full_page_writes') as full_page_writes, pg_catalog.current_setting('server_encoding') as encoding,
  coalesce(pg_catalog.current_schema(), 'pg_catalog') as schema`;
/**
 * Reads the timeline to which the server writes, which grows with every promotion. The timeline of the last checkpoint
 * may be older.
 */
const READ_TIMELINE =
  "select ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint as timeline";

/** Returns the server's timeline; 0 if it is unknown. Throws StorageError if the server is not usable. */
export async function checkServer(
  session: Session,
  { readOnly, mayBeStandby, acceptUnsafe, newestTimeline }: ServerChecks,
): Promise<number> {
  const settings = (await session.script(SETTINGS))[0]?.rows[0] ?? {};
  if (settings["schema"] === "pg_catalog")
    throw new StorageError(
      "unavailable",
      `the search_path of this role names no schema that exists and that the role may use, so the store cannot be found; run "alter role … set search_path = " with the schema of the store, or grant USAGE on it`,
    );
  if (settings["standby"] !== 0 && !mayBeStandby)
    throw new StorageError("readonly", "the Postgres server is a standby; use the address of the primary");
  if (readOnly) return 0;
  if (settings["triggers"] !== "origin")
    throw new StorageError(
      "unavailable",
      `the setting session_replication_role is ${String(settings["triggers"])} for this role, which disables the triggers that protect the store; run "alter role … reset session_replication_role" as a superuser, or "alter database … reset session_replication_role"`,
    );
  const unsafe = ["fsync", "full_page_writes"].filter((name) => settings[name] !== "on");
  if (unsafe.length > 0 && !acceptUnsafe) {
    throw new StorageError(
      "unavailable",
      `the Postgres server runs with ${unsafe.map((name) => `${name} = off`).join(" and ")}, so it may lose decisions that were returned; turn it on, or set accept_unsafe_server if the underlying storage compensates for it`,
    );
  }
  // SQL_ASCII stores bytes without conversion, so it can also store every string.
  const encoding = String(settings["encoding"]);
  if (encoding !== "UTF8" && encoding !== "SQL_ASCII")
    throw new StorageError(
      "unavailable",
      `the Postgres database has the encoding ${encoding}, which cannot store all characters; create one with "createdb -E UTF8 -T template0"`,
    );
  const timeline = await timelineOf(session);
  if (timeline !== 0 && timeline < newestTimeline()) {
    throw new StorageError(
      "corrupt",
      `the Postgres server is on timeline ${timeline}, and this process has used a server on timeline ${newestTimeline()}: it is an older primary, which lacks later entries`,
    );
  }
  return timeline;
}

/** Returns 0 if the server does not report its timeline, because some hosted servers lack the function. */
async function timelineOf(session: Session): Promise<number> {
  try {
    return Number((await session.script(READ_TIMELINE))[0]?.rows[0]?.["timeline"] ?? 0);
  } catch (error) {
    if (session.lost !== null) throw error;
    return 0;
  }
}

/**
 * Rejects if a pooler gives each transaction a different server connection, because settings, LISTEN and prepared
 * statements would be lost or reach another client. To detect such a pooler, begins a transaction on `other`: the
 * pooler then gives `other` the server connection that `one` used last.
 */
export async function assertSessionPooling(one: Session, other: Session): Promise<void> {
  const token = randomUUID();
  const read = async (session: Session): Promise<unknown> =>
    (await session.script("select pg_catalog.current_setting('assent.session', true) as token"))[0]?.rows[0]?.["token"];
  await one.script(`select pg_catalog.set_config('assent.session', '${token}', false)`);
  await other.script("begin");
  try {
    if ((await read(other)) !== token && (await read(one)) === token) return;
  } finally {
    await other.script("rollback");
  }
  throw new StorageError(
    "unavailable",
    "a pooler in front of Postgres shares its connections between transactions: set pool_mode = session in pgbouncer, or connect to Postgres itself",
  );
}
