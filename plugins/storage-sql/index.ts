/** `assent/storage-sql`: the storage contract over an SQL database of your own. */
export type { SqlDialect } from "./dialect.ts";
export { postgresDialect } from "./dialects/postgres.ts";
export { sqliteDialect } from "./dialects/sqlite.ts";
export type { SqlEngine, SqlPurpose, SqlQuery, SqlTransaction } from "./engine.ts";
export type { SqlRow, SqlValue } from "./statement.ts";
export { createSqlStorage, type SqlStorageOptions } from "./storage.ts";
