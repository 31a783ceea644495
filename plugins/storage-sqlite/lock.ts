/**
 * Lets only one process write to a store. The lock is an open write transaction on a small database next to the store.
 * The operating system releases it however the process ends, so there are no stale locks. It does not touch the store's
 * file, which other programs can read.
 *
 * POSIX locks belong to the process. If other code in this process opens and closes the store's or the lock's file
 * without SQLite, the locks are lost. Therefore run backups in another process.
 */
import { StorageError } from "../../src/storage/index.ts";
import { connect, type Connection } from "./sqlite-connection.ts";
import { createPrivateFile } from "./files.ts";
import type { SqliteLibrary } from "./load-library.ts";

export interface StoreLock {
  release(): void;
}

const WAIT = 250;
/**
 * Maximum number of attempts to store our pid after another process overwrote it. The lock is valid whichever pid is
 * stored.
 */
const MAX_ANNOUNCEMENTS = 10;

/**
 * Paths that this process has locked. A process id does not identify the holder, because processes in two containers
 * can both have id 1.
 */
const held = new Set<string>();

/**
 * Acquires the lock. Throws StorageError "locked" if another process or this process holds it. The message names the
 * holder if it is known.
 */
export function lockStore(library: SqliteLibrary, storePath: string): StoreLock {
  const path = `${storePath}.lock`;
  if (held.has(path)) throw lockedError(storePath, "is already open in this process");
  createPrivateFile(path);
  const connection = connect(library, path, { busyTimeout: WAIT });
  try {
    // The lock database does not have to survive a power failure.
    connection.exec("pragma synchronous = off");
    // A process that starts at the same time can overwrite our pid and then fail to get the lock. Repeat until the pid
    // is ours.
    for (let attempt = 1; ; attempt++) {
      announce(connection);
      connection.exec("begin immediate");
      if (readAnnouncedPid(connection) === process.pid || attempt === MAX_ANNOUNCEMENTS) break;
      connection.exec("rollback");
    }
  } catch (error) {
    const isLocked = error instanceof StorageError && error.kind === "locked";
    const thrown = isLocked ? heldByOther(connection, storePath) : error;
    connection.close();
    throw thrown;
  }
  held.add(path);
  return {
    release() {
      connection.close();
      held.delete(path);
    },
  };
}

/**
 * Stores this process's pid. Commits it before the lock is acquired, so that other processes can read who holds the
 * lock.
 */
function announce(connection: Connection): void {
  connection.exec("begin immediate");
  connection.exec("create table if not exists holder (id integer primary key check (id = 1), pid integer not null)");
  connection.exec(`insert or replace into holder (id, pid) values (1, ${process.pid})`);
  connection.exec("commit");
}

function readAnnouncedPid(connection: Connection): unknown {
  return connection.all("select pid from holder", [])[0]?.["pid"];
}

function heldByOther(connection: Connection, storePath: string): StorageError {
  let pid: unknown;
  try {
    pid = readAnnouncedPid(connection);
  } catch {
    // Another process is writing the pid.
  }
  // If the stored pid is this process's pid, the holder is another thread, or a process in another container.
  return lockedError(
    storePath,
    typeof pid === "number" && pid !== process.pid ? `is in use by process ${pid}` : "is in use already",
  );
}

function lockedError(storePath: string, reason: string): StorageError {
  return new StorageError(
    "locked",
    `the store ${storePath} ${reason}; stop that process first, or use a different file`,
  );
}
