/** `assent/storage`: the contract of storages, and a storage that uses an append-only log that you provide. */
export * from "../contract/storage.ts";
export { postgresSettings } from "./postgres-settings.ts";
export { createLoggedStorage, type LoggedChange, type StorageLog } from "./log/logged.ts";
