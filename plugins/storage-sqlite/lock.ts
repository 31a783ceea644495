/**
 * One writer process for each store. The lock is a write transaction that is held open on a small
 * database beside the store: the operating system drops it with the process, however that ends, so
 * there are no stale locks. It does not touch the store's own file, which other programs may read.
 *
 * POSIX locks belong to the process: code in this process that opens and closes the store's or the
 * lock's file by other means than SQLite drops them. Back up from another process.
 */
import { StorageError } from "../../src/storage/index.ts";
import { connect, type Connection } from "./sqlite-connection.ts";
import { createPrivately } from "./files.ts";
import type { SqliteLibrary } from "./load-library.ts";

export interface StoreLock {
  release(): void;
}

const WAIT = 250;
/** How often a name that another one wrote over is written again; the lock holds whatever the name says. */
const NAMINGS = 10;

/** Locks of this process. A process id does not identify the holder, because processes in two containers can both have id 1. */
const held = new Set<string>();

/** Throws StorageError "locked" that names the holder, also when that is this very process. */
export function lockStore(library: SqliteLibrary, storePath: string): StoreLock {
  const path = `${storePath}.lock`;
  if (held.has(path)) throw refusal(storePath, "is open in this process already");
  createPrivately(path);
  const connection = connect(library, path, { busyTimeout: WAIT });
  try {
    // Nothing in here needs to survive a power loss.
    connection.exec("pragma synchronous = off");
    // Another one that starts now may announce itself after this one did, and then come too late.
    for (let naming = 1; ; naming++) {
      announce(connection);
      connection.exec("begin immediate");
      if (announced(connection) === process.pid || naming === NAMINGS) break;
      connection.exec("rollback");
    }
  } catch (error) {
    const taken = error instanceof StorageError && error.kind === "locked";
    const thrown = taken ? heldByOther(connection, storePath) : error;
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

/** Committed before the lock is taken for good: while it is held, others can read who holds it. */
function announce(connection: Connection): void {
  connection.exec("begin immediate");
  connection.exec("create table if not exists holder (id integer primary key check (id = 1), pid integer not null)");
  connection.exec(`insert or replace into holder (id, pid) values (1, ${process.pid})`);
  connection.exec("commit");
}

function announced(connection: Connection): unknown {
  return connection.all("select pid from holder", [])[0]?.["pid"];
}

function heldByOther(connection: Connection, storePath: string): StorageError {
  let pid: unknown;
  try {
    pid = announced(connection);
  } catch {
    // Somebody is writing it just now.
  }
  // This process's own number is somebody else's here: in another container, or in another thread.
  return refusal(
    storePath,
    typeof pid === "number" && pid !== process.pid ? `is in use by process ${pid}` : "is in use already",
  );
}

function refusal(storePath: string, why: string): StorageError {
  return new StorageError(
    "locked",
    `the store ${storePath} ${why}; stop that one first, or give this one another file`,
  );
}
