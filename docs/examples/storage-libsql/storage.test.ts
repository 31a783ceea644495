/** Runs the conformance suite of storages on a libSQL file. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { storageSuite } from "assent/testing";
import { libsqlStorage } from "./storage.ts";

storageSuite({
  test: (name, fn) => void test(name, fn),
  async create() {
    const folder = mkdtempSync(join(tmpdir(), "storage-libsql-"));
    const url = `file:${join(folder, "assent.db")}`;
    let storage = libsqlStorage({ url });
    return {
      storage,
      async reopen() {
        await storage.close();
        storage = libsqlStorage({ url });
        return storage;
      },
      another: async () => libsqlStorage({ url }),
      async destroy() {
        await storage.close();
        rmSync(folder, { recursive: true });
      },
    };
  },
});
