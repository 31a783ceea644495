/** `assent/storage-sql`: implements the storage contract with an SQL database of your choice. */
export type { SqlDialect, SqlTypes, TableRule } from "./dialect.ts";
export { createBundleReader } from "./bundles.ts";
export { postgresDialect, postgresSqlBuilder, rowTriggersDialect } from "./dialects/postgres.ts";
export { sqliteDialect } from "./dialects/sqlite.ts";
export type { SqlEngine, SqlPurpose, SqlQuery, SqlRead, SqlTransaction } from "./engine.ts";
export type { Migration } from "./migrations.ts";
export { createReader, decodeHead, prepareReads, type ReadStatements } from "./queries.ts";
export { compareSchemas, type SchemaObject } from "./schema-faults.ts";
export { bindValues, type WrittenHead, type SqlRow, type SqlValue } from "./statement.ts";
export { createSqlStorage, type SqlStorageOptions } from "./sql-storage.ts";
