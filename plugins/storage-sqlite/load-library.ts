/**
 * Loads the `node:sqlite` API: the runtime's built-in module, or, on runtimes without it such as Node 20, a package
 * with the same API.
 */
import { StorageError } from "../../src/storage/index.ts";

export interface SqliteStatement {
  all(...parameters: (string | number | Uint8Array | null)[]): unknown[];
  run(...parameters: (string | number | Uint8Array | null)[]): { changes: number | bigint };
}

export interface SqliteDatabase {
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  close(): void;
}

export interface SqliteLibrary {
  DatabaseSync: new (path: string) => SqliteDatabase;
}

/** Rejects with StorageError if neither the runtime's API nor the package is available. */
export async function loadSqlite(): Promise<SqliteLibrary> {
  const builtIn = ownSqlite();
  if (builtIn !== undefined) return builtIn;
  try {
    return (await import("@photostructure/sqlite")) as unknown as SqliteLibrary;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    // `bunx` runs the program with Node if it is installed, because the first line of the program names Node.
    const bun = (process.env["npm_config_user_agent"] ?? "").startsWith("bun/")
      ? 'run it on Bun with "bunx --bun assent serve", or '
      : "";
    throw new StorageError(
      "unavailable",
      `the embedded store needs SQLite, which Node ${process.version} does not have: ${bun}use Node 22.13 or later, or run "npm install @photostructure/sqlite", or set DATABASE_URL to a Postgres`,
      { cause: error },
    );
  }
}

function ownSqlite(): SqliteLibrary | undefined {
  const { getBuiltinModule } = process as { getBuiltinModule?: (name: string) => unknown };
  const { emitWarning } = process;
  // Suppress the warning of Node 22 and 24 that `node:sqlite` is experimental. The tests cover the used functions on
  // both.
  process.emitWarning = () => undefined;
  try {
    const library = getBuiltinModule?.("node:sqlite") as SqliteLibrary | undefined;
    return library?.DatabaseSync === undefined ? undefined : library;
  } finally {
    process.emitWarning = emitWarning;
  }
}
