/** The `node:sqlite` API: the runtime's own where it has one, the same API as a package on Node 20. */

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

export async function loadSqlite(): Promise<SqliteLibrary> {
  const { getBuiltinModule } = process as { getBuiltinModule?: (name: string) => unknown };
  const builtIn = getBuiltinModule?.("node:sqlite") as SqliteLibrary | undefined;
  if (builtIn?.DatabaseSync !== undefined) return builtIn;
  return (await import("@photostructure/sqlite")) as unknown as SqliteLibrary;
}
