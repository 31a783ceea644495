/** Runs the conformance suite of storages on this one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { storageSuite } from "assent/testing";
import { journalStorage } from "./journal.ts";

storageSuite({
  test: (name, fn) => void test(name, fn),
  async create() {
    const folder = mkdtempSync(join(tmpdir(), "storage-journal-"));
    const path = join(folder, "journal.jsonl");
    let storage = journalStorage(path);
    return {
      storage,
      // A new object, so that only the file can contain what was committed.
      async reopen() {
        await storage.close();
        storage = journalStorage(path);
        return storage;
      },
      another: async () => journalStorage(path),
      async destroy() {
        await storage.close();
        rmSync(folder, { recursive: true });
      },
    };
  },
});
