/** Entries and actions are found by their hashes before and after upkeep indexes them, and erased hashes are removed. */
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { fromHex } from "../../src/domain/hash.ts";
import { HASH_SPAN } from "../../plugins/storage-sql/hash-index.ts";
import { actionRow, BASE_TIME, leafHashHex, leafHashOfText } from "../../src/testing/suite/rows.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { ENGINES, stopEngines, tableOf } from "../support/engines.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";

after(stopEngines);

const SIZE = HASH_SPAN + 300;
const OFTEN = leafHashHex("requested often");
/** Decisions on the same request. */
const SAME = [5, 256, HASH_SPAN - 1, HASH_SPAN, SIZE - 1];

async function fill(storage: Storage): Promise<void> {
  const ledger = await openLedgerOn(storage);
  for (let done = 0; done < SIZE; done += 200)
    await ledger.transact(async (tx) => {
      for (let n = done; n < Math.min(SIZE, done + 200); n++) tx.record(entry(n));
    });
  await ledger.close();
  for (let done = 0; done < SIZE; done += 500)
    await storage.write(async (tx) => {
      for (let n = done; n < Math.min(SIZE, done + 500); n++)
        await tx.insertAction(actionRow(n, SAME.includes(n) ? { request_hash: OFTEN, status: "denied" } : {}));
    });
}

for (const { name, skip, createDatabase } of ENGINES)
  describe(`hashes on ${name}`, { skip }, () => {
    it("find the same entries and actions before and after they are indexed, except erased actions", async () => {
      const database = await createDatabase();
      const storage = database.storage();
      await storage.open();
      await fill(storage);
      const entries = await storage.entries(0, SIZE);
      const listed = async (filter: { before_seq?: number; offset?: number; limit: number }): Promise<number[]> =>
        (await storage.actions({ visibility: { all: true }, request_hash: OFTEN, ...filter })).map(
          ({ decision_seq }) => decision_seq,
        );
      async function compare(): Promise<void> {
        for (const seq of [0, 255, 256, HASH_SPAN - 1, HASH_SPAN, HASH_SPAN + 256, SIZE - 1])
          assert.deepEqual(await storage.entryByHash(entries[seq]!.leaf_hash), entries[seq], String(seq));
        assert.equal(await storage.entryByHash(leafHashOfText("not an entry")), null);
        const newestFirst = SAME.toReversed();
        assert.deepEqual(await listed({ limit: 9 }), newestFirst);
        assert.deepEqual(await listed({ limit: 2, offset: 1 }), newestFirst.slice(1, 3));
        assert.deepEqual(await listed({ limit: 2, before_seq: HASH_SPAN }), newestFirst.slice(2, 4));
        assert.deepEqual(
          (await storage.actions({ visibility: { all: true }, request_hash: leafHashHex("request 7"), limit: 9 })).map(
            ({ id }) => id,
          ),
          ["action-7"],
        );
      }
      await compare();
      while (((await storage.upkeep?.(5000)) ?? 0) > 0);
      assert.equal((await database.all("select distinct span from hash_index")).length, 1);
      await compare();
      assert.deepEqual(await storage.inspect?.(), []);

      await storage.write(async (tx) => assert.equal(await tx.eraseAction(`action-${SAME[1]}`, BASE_TIME), true));
      assert.deepEqual(
        await listed({ limit: 9 }),
        SAME.toReversed().filter((seq) => seq !== SAME[1]),
      );
      const raw = await database.raw();
      const rows = await raw.rows(tableOf(raw, "hash_index"));
      const record = Buffer.from([
        ...fromHex(OFTEN).subarray(0, 4),
        (SAME[1] as number) >> 8,
        (SAME[1] as number) & 255,
      ]);
      assert.equal(rows.filter(({ bytes }) => Buffer.from(bytes as Uint8Array).includes(record)).length, 0);
      assert.deepEqual(await storage.inspect?.(), []);

      const altered = rows.find(({ bytes }) => (bytes as Uint8Array).length > 0)!;
      await raw.set(tableOf(raw, "hash_index"), altered, "bytes", (altered["bytes"] as Uint8Array).slice(6));
      await raw.insert(tableOf(raw, "hash_index"), { ...altered, kind: "other" });
      await raw.close();
      assert.deepEqual(await storage.inspect?.(), [
        `the index of the hashes of the entries 0 to ${HASH_SPAN - 1} was altered`,
        "the index of hashes has additional rows",
      ]);
      await storage.close();
    });

    it("of an allowed action are joinable if the key's newest allowed actions contain it", async () => {
      const storage = (await createDatabase()).storage();
      await storage.open();
      const open = { status: "allowed", approved_until: BASE_TIME + 60 } as const;
      await storage.write(async (tx) => {
        await tx.insertAction(actionRow(0, { ...open, request_hash: OFTEN, status: "approved" }));
        for (let n = 1; n < 1100; n++)
          await tx.insertAction(actionRow(n, { ...open, approved_until: BASE_TIME + 60 + n }));
      });
      const found = async (n: number) =>
        (await storage.openAction("key-1", leafHashHex(`request ${n}`), BASE_TIME))?.decision_seq ?? null;
      assert.deepEqual([await found(1099), await found(100), await found(99)], [1099, 100, null]);
      assert.equal((await storage.openAction("key-1", OFTEN, BASE_TIME))?.decision_seq, 0);
      await storage.close();
    });
  });
