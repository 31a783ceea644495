/** Converts errors of Postgres and the network to `StorageError`. */
import { StorageError, type StorageErrorKind } from "../../src/storage/index.ts";

/** SQLSTATE codes, or their classes (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const KINDS: Readonly<Record<string, StorageErrorKind>> = {
  "25006": "readonly", // read_only_sql_transaction: a standby
  "42501": "readonly", // insufficient_privilege
  "22012": "unavailable", // division_by_zero: the check in the COMMIT message failed
  "40001": "conflict", // serialization_failure, including from other engines that use the protocol of Postgres
  "40P01": "conflict", // deadlock_detected
  "53100": "full", // disk_full
  XX001: "corrupt",
  XX002: "corrupt",
};

/**
 * Returns true if the connection is lost or about to close (SQLSTATE classes 08 and 57P, and error codes of the
 * network). The connection's transaction is then rolled back.
 */
export function isConnectionLoss(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" && (/^(08|57P)/.test(code) || !/^[0-9A-Z]{5}$/.test(code));
}

/**
 * Returns the code of an error, or of its cause: the SQLSTATE of an error from Postgres, or a code such as
 * ECONNREFUSED. Null if there is none.
 */
export function readErrorCode(error: unknown): string | null {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === "string") return code;
  return cause === undefined ? null : readErrorCode(cause);
}

/**
 * Converts an error to StorageError. `doing` completes "cannot …". The message never contains the URL, which may
 * include a password.
 */
export function toStorageError(error: unknown, doing: string): StorageError {
  if (error instanceof StorageError) return error;
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  const kind = KINDS[code ?? ""] ?? (code?.startsWith("22") === true ? "invalid" : "unavailable");
  return new StorageError(
    kind,
    `cannot ${doing}: ${message ?? String(error)}${code === undefined || /^[A-Z_]+$/.test(code) ? "" : ` (SQLSTATE ${code})`}`,
    { cause: error },
  );
}
