/**
 * SQLite as the engine of the shared SQL storage. Writes go through one connection, one transaction at a time. Reads
 * outside a transaction use another connection, so that they see only committed state even while a transaction is open.
 * WAL allows both at once. A transaction is durable once its COMMIT has returned, because `synchronous = full` syncs
 * the WAL first. After a failed COMMIT the transaction may or may not be stored. The connection is then closed and not
 * used again, because a second fsync would not report the lost data.
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Logger } from "../../src/plugin.ts";
import { StorageError } from "../../src/storage/index.ts";
import type { SqlEngine, SqlPurpose, SqlQuery, SqlTransaction } from "../storage-sql/api.ts";
import { connectStore, type Connection } from "./sqlite-connection.ts";
import { readSqlitePrimaryCode, invalidatesConnection, toStorageError } from "./sqlite-errors.ts";
import { createPrivateFile, readFileIdentity, prepareFolder } from "./files.ts";
import { loadSqlite, type SqliteLibrary } from "./load-library.ts";
import { lockStore, type StoreLock } from "./lock.ts";
import { findSchemaFaults } from "./schema-faults.ts";

interface OpenStore {
  path: string;
  library: SqliteLibrary;
  /** Null if the store was opened read-only. */
  lock: StoreLock | null;
  reader: Connection;
  /** Null after a failure that made the connection unusable. The next write opens a new connection. */
  writer: Connection | null;
  /** `readFileIdentity` of the store's file when it was opened. Null if the store was opened read-only. */
  file: string | null;
  /** `readFileIdentity` of the WAL when it was opened. Null before the first transaction, which creates the WAL. */
  wal: string | null;
  /** Whether the WAL might still contain erased data. */
  stale: boolean;
  watch: ReturnType<typeof setInterval> | null;
  /** Error that every write throws while the files are missing; null if they are present. */
  away: StorageError | null;
  /** Error that every read and write throws until the service restarts; null if there is none. */
  lost: StorageError | null;
}

/**
 * Interval at which the files are checked, so that their loss is logged even without writes. Milliseconds. Each write
 * also checks them.
 */
const LOOK_MS = 500;
/** Minimum interval between attempts to empty a WAL that another program is reading. Milliseconds. */
const SCRUB_AGAIN = 1000;
/** "Asnt" in the file's header, which prevents the migration of another program's database. */
const APPLICATION_ID = 0x41736e74;
const MAX_FAULTS = 20;
/**
 * SQLITE_PROTOCOL. The file system did not release a lock of this process, so the process can no longer lock its own
 * store. Each further attempt takes ten seconds.
 */
const PROTOCOL_ERROR = 15;

export class SqliteEngine implements SqlEngine {
  readonly name = "storage-sqlite";
  readonly exclusive = true;
  private readonly given: string;
  private readonly busyTimeout: number;
  private readonly log: Logger | undefined;
  private store: OpenStore | null = null;
  private scrubbed = -Infinity;

  constructor(configuredPath: string, busyTimeout: number, log?: Logger) {
    this.given = configuredPath;
    this.busyTimeout = busyTimeout;
    this.log = log;
  }

  toStorageError(error: unknown, doing: string): StorageError {
    return toStorageError(error, doing);
  }

  async open({ readOnly }: { readOnly: boolean }): Promise<void> {
    this.store = readOnly
      ? await openToRead(this.given, this.busyTimeout)
      : await openStore(this.given, this.busyTimeout);
    if (readOnly) return;
    this.look();
    this.store.watch = setInterval(() => this.look(), LOOK_MS);
    this.store.watch.unref?.();
  }

  async close(): Promise<void> {
    const closing = this.store;
    if (closing === null) return;
    if (closing.watch !== null) clearInterval(closing.watch);
    closing.reader.close();
    foldWal(closing.writer);
    this.dropWriter();
    this.store = null;
    closing.lock?.release();
  }

  readonly query: SqlQuery = async (sql, values) => {
    const { reader } = this.opened();
    return this.tried(() => reader.all(sql, values));
  };

  async integrityFaults(): Promise<string[]> {
    const { reader } = this.opened();
    try {
      const rows = reader.all(`pragma integrity_check(${MAX_FAULTS})`, []).map((row) => String(row["integrity_check"]));
      return rows.filter((row) => row !== "ok").map((row) => `SQLite's integrity check: ${row}`);
    } catch (error) {
      const failure = toStorageError(error, "check the integrity of the store");
      if (failure.kind === "corrupt") return [failure.message];
      throw failure;
    }
  }

  async schemaFaults(statements: readonly string[]): Promise<string[]> {
    const { library, reader } = this.opened();
    return findSchemaFaults(library, reader, statements);
  }

  async begin(purpose: SqlPurpose): Promise<SqlTransaction> {
    const open = this.inPlace();
    const writer = (open.writer ??= connectStore(open.library, open.path, { busyTimeout: this.busyTimeout }));
    try {
      this.tried(() => writer.run("begin immediate", []));
      if (purpose === "migrate") writer.exec(`pragma application_id = ${APPLICATION_ID}`);
      open.wal ??= readFileIdentity(walOf(open.path));
    } catch (error) {
      this.rollBack(open, writer, error);
      throw error;
    }
    return {
      query: async (sql, values) => writer.query(sql, values),
      commit: async () => {
        try {
          writer.run("commit", []);
          // Check that the file still exists, so that writes to a deleted file are not acknowledged.
          this.inPlace();
        } catch (error) {
          this.dropWriter();
          throw error;
        }
        this.scrubFile(open);
      },
      rollback: async (cause) => this.rollBack(open, writer, cause),
    };
  }

  async scrub(): Promise<void> {
    if (this.store === null) return;
    this.store.stale = true;
    this.scrubbed = -Infinity;
    this.scrubFile(this.store);
  }

  async backup(path: string): Promise<void> {
    const { library, path: own } = this.opened();
    createPrivateFile(path);
    // Use a separate connection: the reader is query-only, and the writer may be within a transaction, in which SQLite
    // rejects VACUUM.
    const connection = connectStore(library, own, { busyTimeout: this.busyTimeout });
    try {
      connection.run("vacuum into ?", [path]);
    } finally {
      connection.close();
    }
  }

  async compact(): Promise<void> {
    const open = this.inPlace();
    const writer = (open.writer ??= connectStore(open.library, open.path, { busyTimeout: this.busyTimeout }));
    this.tried(() => writer.exec("vacuum"));
    // Until the WAL is emptied, only the WAL has the new pages, and the file still has the old ones.
    await this.scrub();
    if (open.stale)
      throw new StorageError(
        "unavailable",
        `another program reads ${open.path}, so copies of erased data remain in it; end that program and compact again`,
      );
  }

  private opened(): OpenStore {
    if (this.store === null) throw new StorageError("unavailable", `the store ${this.given} is not open`);
    if (this.store.lost !== null) throw this.store.lost;
    return this.store;
  }

  /** Returns the store for a write. Throws if the files are not in place. Reads do not check this. */
  private inPlace(): OpenStore {
    this.look();
    const open = this.opened();
    if (open.away !== null) throw open.away;
    return open;
  }

  /** Runs the work. Remembers a failure that only a restart can fix. */
  private tried<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (this.store !== null && readSqlitePrimaryCode(error) === PROTOCOL_ERROR)
        this.lose(
          new StorageError(
            "unavailable",
            `the file system did not release a lock of ${this.store.path}, so nothing can be read or written; restart the service`,
            { cause: error },
          ),
        );
      throw error;
    }
  }

  private lose(reason: StorageError): void {
    if (this.store === null || this.store.lost !== null) return;
    this.store.lost = reason;
    this.log?.error("this process has lost access to the store", { error: reason.message });
  }

  private look(): void {
    if (this.store === null) return;
    try {
      assertInPlace(this.store);
      this.store.away = null;
    } catch (error) {
      const away = toStorageError(error, `look for ${this.store.path}`);
      if (this.store.away === null) this.log?.error("the store's files are not in place", { error: away.message });
      this.store.away = away;
    }
  }

  /**
   * Rolls back the open transaction. Closes the connection if the error makes it unusable, or if the rollback fails.
   */
  private rollBack(open: OpenStore, writer: Connection, cause: unknown): void {
    if (open.writer !== writer) return;
    try {
      if (invalidatesConnection(cause)) this.dropWriter();
      else writer.exec("rollback");
    } catch {
      this.dropWriter();
    }
  }

  private dropWriter(): void {
    this.store?.writer?.close();
    if (this.store !== null) this.store.writer = null;
  }

  /** Empties the WAL. Does not wait for other programs, because decisions would also have to wait. */
  private scrubFile(open: OpenStore): void {
    const now = performance.now();
    if (!open.stale || open.writer === null || now - this.scrubbed < SCRUB_AGAIN) return;
    this.scrubbed = now;
    try {
      open.writer.exec("pragma busy_timeout = 0");
      open.stale = open.writer.all("pragma wal_checkpoint(truncate)", [])[0]?.["busy"] !== 0;
      open.writer.exec(`pragma busy_timeout = ${this.busyTimeout}`);
    } catch {
      // Committed data is safe. The next write opens a new connection and tries again.
      this.dropWriter();
    }
  }
}

async function openStore(configuredPath: string, busyTimeout: number): Promise<OpenStore> {
  if (configuredPath === ":memory:" || configuredPath === "") {
    throw new StorageError("unavailable", `the path "${configuredPath}" is not a file path; the store needs a file`);
  }
  const library = await loadSqlite();
  const path = prepareFolder(configuredPath);
  // Acquire the lock first, so that the file is not touched while another process uses it.
  const lock = lockStore(library, path);
  let writer: Connection | null = null;
  try {
    createPrivateFile(path);
    writer = connectStore(library, path, { busyTimeout });
    assertOurs(writer, path);
    const reader = connectStore(library, path, { busyTimeout, readOnly: true });
    // A process that was killed directly after an erasure may have left erased data in the WAL.
    foldWal(writer);
    const file = readFileIdentity(path);
    return { path, library, lock, reader, writer, file, wal: null, stale: false, watch: null, away: null, lost: null };
  } catch (error) {
    writer?.close();
    lock.release();
    throw toStorageError(error, `open the store ${path}`);
  }
}

const walOf = (path: string): string => `${path}-wal`;

/**
 * Throws if a file was deleted or renamed. A process can still write to a deleted file, but the written data is lost
 * when the process ends.
 */
function assertInPlace({ path, file, wal }: OpenStore): void {
  for (const [name, identity] of [
    [path, file],
    [walOf(path), wal],
  ] as const) {
    if (identity !== null && readFileIdentity(name) !== identity)
      throw new StorageError(
        "unavailable",
        `${name} was removed or replaced while the store was open, so new data would be lost; restore the original file, or stop the service first`,
      );
  }
}

/** Opens the store without a lock and without changes, because the service may be using it. */
async function openToRead(configuredPath: string, busyTimeout: number): Promise<OpenStore> {
  const path = resolve(configuredPath);
  if (!existsSync(path)) throw new StorageError("unavailable", `there is no store at ${path}`);
  const library = await loadSqlite();
  const reader = connectStore(library, path, { busyTimeout, readOnly: true });
  try {
    if (assertOurs(reader, path) === 0) throw new StorageError("corrupt", `${path} is not a store: it is empty`);
    return {
      path,
      library,
      lock: null,
      reader,
      writer: null,
      file: null,
      wal: null,
      stale: false,
      watch: null,
      away: null,
      lost: null,
    };
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** Returns the number of tables. Throws for another program's database, which must not be migrated. */
function assertOurs(connection: Connection, path: string): number {
  const tables = connection.all("select name from sqlite_schema where type = 'table'", []).map((row) => row["name"]);
  if (tables.length === 0) return 0;
  const id = connection.all("pragma application_id", [])[0]?.["application_id"];
  if (id !== APPLICATION_ID || !tables.includes("schema_migrations")) {
    throw new StorageError("corrupt", `${path} is a database of another program; use a separate file for the store`);
  }
  return tables.length;
}

/**
 * Moves the WAL into the database file, so that this file can be copied on its own. Data in the WAL is safe even
 * without this.
 */
function foldWal(writer: Connection | null): void {
  try {
    writer?.exec("pragma wal_checkpoint(truncate)");
  } catch {
    // The next start empties the WAL.
  }
}
