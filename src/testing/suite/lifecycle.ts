/** Cases for `open`, `close`, `ping` and reopening. */
import assert from "./assert.ts";
import { setImmediate as turn } from "node:timers/promises";
import { readEverything, EMPTY_STORE, writeEverything } from "./everything.ts";
import { appendEntries, leafHashHex, type DefineCase, isStorageError } from "./rows.ts";

export function lifecycleCases(test: DefineCase): void {
  test("open and close are idempotent", async ({ storage }) => {
    await storage.open();
    await storage.write((tx) => tx.putMeta("a", "1"));
    await Promise.all([storage.open(), storage.open()]);
    await storage.close();
    await storage.close();
    await storage.open();
    assert.equal(await storage.meta("a"), "1");
  });

  test("a closed store rejects every call with StorageError", async ({ storage }) => {
    await storage.close();
    let ran = false;
    await assert.rejects(storage.head(), isStorageError);
    await assert.rejects(storage.meta("a"), isStorageError);
    await assert.rejects(storage.ping(), isStorageError);
    await assert.rejects(
      storage.write(async () => {
        ran = true;
      }),
      isStorageError,
    );
    assert.equal(ran, false);
  });

  test("close waits for running and queued work", async ({ storage }) => {
    const running = storage.write(async (tx) => {
      await turn();
      await tx.putMeta("a", "1");
    });
    const waiting = storage.write((tx) => tx.putMeta("b", "2"));
    await storage.close();
    await Promise.all([running, waiting]);
    await storage.open();
    assert.deepEqual([await storage.meta("a"), await storage.meta("b")], ["1", "2"]);
  });

  test("ping resolves for a store that accepts writes, and does not change anything that reads return", async ({
    storage,
  }) => {
    await storage.write(writeEverything);
    const before = await readEverything(storage);
    await Promise.all([storage.ping(), storage.ping(), storage.write((tx) => tx.putMeta("x", "y"))]);
    assert.deepEqual(await readEverything(storage), before);
  });

  test("all data is still stored after reopening", async ({ storage, reopen }) => {
    await storage.write(writeEverything);
    const before = await readEverything(storage);
    const reopened = await reopen();
    assert.deepEqual(await readEverything(reopened), before);
    await reopened.write((tx) => appendEntries(tx, 1));
    assert.equal((await reopened.head()).size, 3);
  });

  test("rolled-back changes do not appear after reopening", async ({ storage, reopen }) => {
    await assert.rejects(
      storage.write(async (tx) => {
        await writeEverything(tx);
        throw new Error("no");
      }),
      /no/,
    );
    assert.deepEqual(await readEverything(await reopen()), EMPTY_STORE);
  });

  test("a value in meta can be replaced, and an unknown name is null", async ({ storage }) => {
    await storage.write((tx) => tx.putMeta("a", "1"));
    await storage.write((tx) => tx.putMeta("a", leafHashHex("2")));
    assert.equal(await storage.meta("a"), leafHashHex("2"));
    assert.equal(await storage.meta("b"), null);
  });
}
