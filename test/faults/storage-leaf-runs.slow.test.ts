/** Entries by their hash: through the runs, behind them, and where somebody has changed a run. */
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { RUN } from "../../src/storage/sql/leaf-runs.ts";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import { appendSome } from "../../src/testing/suite/rows.ts";
import { ENGINES, stopEngines, tableOf, type Place } from "../support/engines.ts";
import type { RawValue } from "../support/raw-store.ts";

after(stopEngines);

const SIZE = RUN + 300;

async function upkeep(storage: Storage): Promise<void> {
  for (let i = 0; ((await storage.upkeep?.(250)) ?? 0) > 0; i++) assert.ok(i < 200, "it ends");
}

for (const { name, skip, place } of ENGINES) {
  const indexes = async (at: Place): Promise<number> => {
    const rows = await at.all(
      name === "SQLite"
        ? "select name from sqlite_schema where type = 'index' and name = 'entries_by_leaf_hash'"
        : "select indexname from pg_indexes where indexname = 'entries_by_leaf_hash'",
    );
    return rows.length;
  };

  describe(`the runs of hashes on ${name}`, { skip }, () => {
    it("find what the index found, which is dropped, and a run that was changed is noticed", async (t) => {
      const at = await place();
      const storage = at.storage();
      t.after(() => storage.close());
      await storage.open();
      for (let size = 0; size < SIZE; size += 4096)
        await storage.write((tx) => appendSome(tx, Math.min(4096, SIZE - size)));
      const seqs = [0, 1, 255, 256, RUN - 1, RUN, SIZE - 1];
      const rows = await Promise.all(seqs.map(async (seq) => (await storage.entries(seq, seq + 1))[0]));
      const look = async (reader: Pick<Storage, "entryByHash">): Promise<void> => {
        for (const row of rows) {
          assert.ok(row !== undefined);
          assert.deepEqual(await reader.entryByHash(row.leaf_hash), row);
          // One that begins alike is another.
          const near = new Uint8Array(row.leaf_hash);
          near[31] = (near[31] ?? 0) ^ 1;
          assert.equal(await reader.entryByHash(near), null);
        }
        assert.equal(await reader.entryByHash(new Uint8Array(32)), null);
        assert.equal(await reader.entryByHash(new Uint8Array(0)), null);
      };
      await look(storage);
      // What one process has is made without it; others may be of a version that looks it up.
      assert.equal(await indexes(at), storage.exclusive ? 0 : 1);
      await upkeep(storage);
      assert.equal(await indexes(at), 0);
      await look(storage);
      await storage.write((tx) => look(tx));
      assert.deepEqual(await storage.inspect?.(), []);
      await storage.write((tx) => appendSome(tx, 10));
      await look(storage);

      const raw = await at.raw();
      t.after(() => raw.close());
      const table = tableOf(raw, "leaf_runs");
      const all = await raw.rows(table);
      assert.equal(all.length, 256);
      const [first, second] = all;
      assert.ok(first !== undefined && second !== undefined);
      const flipped = new Uint8Array(first["bytes"] as Uint8Array);
      flipped[7] = (flipped[7] ?? 0) ^ 1;
      const wrong = /run 0 of the entries' hashes/;
      await raw.set(table, first, "bytes", flipped);
      assert.match(String(await storage.inspect?.()), wrong);
      await raw.set(table, first, "bytes", first["bytes"] as RawValue);
      await raw.remove(table, second);
      assert.match(String(await storage.inspect?.()), wrong);
      await look(storage);
      await raw.insert(table, second);
      const gap = { ...second, place: 5 };
      await raw.insert(table, gap);
      await assert.rejects(
        storage.entryByHash(new Uint8Array(32)),
        (error) => error instanceof StorageError && error.kind === "corrupt" && error.message.startsWith("run 1 "),
      );
      await raw.remove(table, gap);
      const more = { ...second, place: 200 * 2 ** 20 + 7 };
      await raw.insert(table, more);
      assert.match(String(await storage.inspect?.()), /257 rows, not 256/);
      await raw.remove(table, more);
      assert.deepEqual(await storage.inspect?.(), []);
      await look(storage);
    });
  });
}
