/**
 * One writer process for each store. The lock is a write transaction that is held open on a small
 * database beside the store: the operating system drops it with the process, however that ends, so
 * there are no stale locks. It does not touch the store's own file, which other programs may read.
 *
 * POSIX locks belong to the process: code in this process that opens and closes the store's or the
 * lock's file by other means than SQLite drops them. Back up from another process.
 */
import { StorageError } from "../../src/contract/storage.ts";
import { connect, type Connection } from "./connection.ts";
import { createPrivately } from "./files.ts";
import type { SqliteLibrary } from "./library.ts";

export interface StoreLock {
  release(): void;
}

const WAIT = 250;

/** Throws StorageError "locked" that names the holder, also when that is this very process. */
export function lockStore(library: SqliteLibrary, storePath: string): StoreLock {
  const path = `${storePath}.lock`;
  createPrivately(path);
  const connection = connect(library, path, { busyTimeout: WAIT });
  try {
    // Nothing in here needs to survive a power loss.
    connection.exec("pragma synchronous = off");
    announce(connection);
    connection.exec("begin immediate");
  } catch (error) {
    const taken = error instanceof StorageError && error.kind === "locked";
    const refusal = taken ? heldBy(connection, storePath) : error;
    connection.close();
    throw refusal;
  }
  return { release: () => connection.close() };
}

/** Committed before the lock is taken for good: while it is held, others can read who holds it. */
function announce(connection: Connection): void {
  connection.exec("begin immediate");
  connection.exec("create table if not exists holder (id integer primary key check (id = 1), pid integer not null)");
  connection.exec(`insert or replace into holder (id, pid) values (1, ${process.pid})`);
  connection.exec("commit");
}

function heldBy(connection: Connection, storePath: string): StorageError {
  let pid: unknown;
  try {
    pid = connection.query("select pid from holder")[0]?.["pid"];
  } catch {
    // Somebody is writing it just now.
  }
  const holder = pid === process.pid ? "is open in this process already" : typeof pid === "number" ? `is in use by process ${pid}` : "is in use by another process";
  return new StorageError("locked", `the store ${storePath} ${holder}; stop that one first, or give this one another file`);
}
