/**
 * Helpers for authors of storages and tests: the conformance suite, a storage in memory, fault injection, and the
 * audit.
 */
export { READER_METHODS, WRITER_METHODS } from "../contract/storage.ts";
export { withFaults, type FaultMode, type FaultOptions, type Faults } from "./faults.ts";
export { memoryStorage } from "./memory-storage.ts";
export { storageSuite, type StorageSuiteOptions, type StorageUnderTest } from "./storage-suite.ts";
export { auditStore } from "./ledger-audit.ts";
