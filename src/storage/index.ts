/** `assent/storage`: the contract of storages, and a storage that uses an append-only log that you provide. */
export * from "../contract/storage.ts";
export { authorityPrefix } from "../domain/action-authority.ts";
export { recomputeActionRow } from "../domain/action-history.ts";
export { MAX_ENTRY_BYTES } from "../domain/entries.ts";
export { NO_FOLLOWED_ENTRIES } from "../domain/followed-digest.ts";
export { decodeEntryBundle } from "../domain/tiles.ts";
export { postgresSettings } from "./postgres-settings.ts";
export { createLoggedStorage, type LoggedChange, type StorageLog } from "./log/logged.ts";
