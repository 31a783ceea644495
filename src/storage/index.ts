/** `assent/storage`: the contract of storages, and a storage that uses an append-only log that you provide. */
export * from "../contract/storage.ts";
export { authorityPrefix } from "../domain/action-authority.ts";
export { recomputeActionRow } from "../domain/action-history.ts";
export { decodeEntry, type EntryBody, isCoreEntry, MAX_ENTRY_BYTES } from "../domain/entries.ts";
export { ERASABLE_PARTS, type ErasablePart } from "../domain/erasure.ts";
export { NO_FOLLOWED_ENTRIES } from "../domain/followed-digest.ts";
export { equalBytes, toHex } from "../domain/hash.ts";
export { hashLeaf } from "../domain/merkle.ts";
export { foldName } from "../domain/names.ts";
export { decodeEntryBundle, encodeEntryBundle, TILE_WIDTH } from "../domain/tiles.ts";
export { postgresSettings } from "./postgres-settings.ts";
export { createLoggedStorage, type LoggedChange, type StorageLog } from "./log/logged.ts";
