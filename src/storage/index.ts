/** `assent/storage`: the contract of storages, and the one over a log of one's own. */
export * from "../contract/storage.ts";
export { createLoggedStorage, type LoggedChange, type StorageLog } from "./log/logged.ts";
