/** Converts errors of SQLite and the file system to `StorageError`. */
import { StorageError, type StorageErrorKind } from "../../src/storage/index.ts";

/** Kinds of errors, keyed by primary code, which is the low byte of SQLite's code: https://sqlite.org/rescode.html. */
const KIND_OF_PRIMARY_CODE: Readonly<Record<number, StorageErrorKind>> = {
  3: "readonly", // PERM
  5: "locked", // BUSY
  6: "locked", // LOCKED
  8: "readonly", // READONLY
  11: "corrupt", // CORRUPT
  13: "full", // FULL
  26: "corrupt", // NOTADB
};
const IOERR_SHMSIZE = 4874;
const ERRNO: Readonly<Record<string, StorageErrorKind>> = {
  EACCES: "readonly",
  EPERM: "readonly",
  EROFS: "readonly",
  ENOSPC: "full",
  EDQUOT: "full",
  EFBIG: "full",
};
const ERRNO_NUMBER: Readonly<Record<number, StorageErrorKind>> = {
  1: "readonly",
  13: "readonly",
  30: "readonly",
  27: "full",
  28: "full",
  122: "full",
};

/**
 * Codes, keyed by SQLite's error text (sqlite3_errstr). The package for Node 20 does not set a code on an error of a
 * statement that returns rows.
 */
const CODE_OF_TEXT: Readonly<Record<string, number>> = {
  "database is locked": 5,
  "database table is locked": 6,
  "out of memory": 7,
  "attempt to write a readonly database": 8,
  interrupted: 9,
  "disk I/O error": 10,
  "database disk image is malformed": 11,
  "database or disk is full": 13,
  "unable to open database file": 14,
  "file is not a database": 26,
};

interface Failure {
  message?: string;
  code?: string;
  errcode?: number;
  systemErrno?: number;
}

/** Converts an error to StorageError. Returns a StorageError unchanged. `doing` completes "cannot …". */
export function toStorageError(error: unknown, doing: string): StorageError {
  if (error instanceof StorageError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new StorageError(kindOf(error as Failure), `cannot ${doing}: ${message}`, { cause: error });
}

function kindOf(error: Failure | null | undefined): StorageErrorKind {
  const { code, systemErrno } = error ?? {};
  const errcode = codeOf(error);
  // The column contains an integer above 2^53, which the service never writes.
  if (code === "ERR_OUT_OF_RANGE") return "corrupt";
  if (errcode === undefined) return ERRNO[code ?? ""] ?? "unavailable";
  return (
    KIND_OF_PRIMARY_CODE[errcode & 0xff] ??
    ERRNO_NUMBER[systemErrno ?? 0] ??
    (errcode === IOERR_SHMSIZE ? "full" : "unavailable")
  );
}

/**
 * Returns true if the state of the connection is uncertain, so that it must be closed: SQLite may have rolled back on
 * its own, or an fsync failed, after which the data cannot be trusted. Returns false for a violated constraint, which
 * fails only one statement.
 */
export function invalidatesConnection(error: unknown): boolean {
  return [7, 8, 9, 10, 11, 13, 14, 26].includes(readSqlitePrimaryCode(error) ?? 0);
}

/** Returns the code of the underlying SQLite error; null if there is none. */
export function readSqlitePrimaryCode(error: unknown): number | null {
  const cause = error instanceof StorageError ? error.cause : error;
  const errcode = codeOf(cause as Failure | undefined);
  return errcode === undefined ? null : errcode & 0xff;
}

function codeOf(error: Failure | null | undefined): number | undefined {
  return error?.errcode ?? (error?.code === "ERR_SQLITE_ERROR" ? CODE_OF_TEXT[error.message ?? ""] : undefined);
}
