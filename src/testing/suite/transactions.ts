/** Cases for transactions that do not depend on the kind of data. */
import assert from "./assert.ts";
import { setImmediate as turn } from "node:timers/promises";
import { type StorageTransaction } from "../../contract/storage.ts";
import { readEverything, EMPTY_STORE, writeEverything } from "./everything.ts";
import {
  actionRow,
  agentRow,
  appendEntries,
  entryRow,
  headRow,
  keyRow,
  BASE_TIME,
  policyRow,
  tileRow,
  type DefineCase,
  isStorageError,
  documentRow,
} from "./rows.ts";

export function transactionCases(test: DefineCase): void {
  test("an empty store has a head of size 0 and nothing else", async ({ storage }) => {
    assert.deepEqual(await readEverything(storage), EMPTY_STORE);
    assert.equal(typeof storage.exclusive, "boolean");
  });

  test("write resolves to the result of its work, and its rows are stored", async ({ storage }) => {
    assert.equal(await storage.write(async (tx) => (await writeEverything(tx), "done")), "done");
    const values = await readEverything(storage);
    for (const [name, value] of Object.entries(values))
      assert.notDeepEqual(value, EMPTY_STORE[name as keyof typeof EMPTY_STORE], name);
  });

  test("an error rolls everything back and is rethrown unchanged", async ({ storage }) => {
    const error = new Error("no");
    await assert.rejects(
      storage.write(async (tx) => {
        await writeEverything(tx);
        throw error;
      }),
      (thrown) => thrown === error,
    );
    assert.deepEqual(await readEverything(storage), EMPTY_STORE);
  });

  test("the thrown value does not have to be an Error", async ({ storage }) => {
    for (const thrown of ["text", null, 7]) {
      const outcome = await storage
        .write(async (tx) => {
          await tx.putMeta("a", "b");
          throw thrown;
        })
        .then(
          () => "resolved",
          (error: unknown) => ({ error }),
        );
      assert.deepEqual(outcome, { error: thrown });
    }
    assert.equal(await storage.meta("a"), null);
  });

  test("an error after a rejected value, or with its own code, is also rethrown unchanged", async ({ storage }) => {
    const error = Object.assign(new TypeError("no"), { code: "ERR_OF_THE_CALLER" });
    for (const value of ["fine", "\ud800"]) {
      await assert.rejects(
        storage.write(async (tx) => {
          await tx.putMeta("a", "b");
          await tx.putMeta("c", value).catch(() => undefined);
          throw error;
        }),
        (thrown) => thrown === error,
      );
      assert.equal(await storage.meta("a"), null);
    }
  });

  test("an error rolls back both updates and inserts", async ({ storage }) => {
    await storage.write(writeEverything);
    const before = await readEverything(storage);
    await assert.rejects(
      storage.write(async (tx) => {
        await appendEntries(tx, 3);
        await tx.putCheckpoint(5, "later");
        assert.equal(
          await tx.updateAction(
            "action-1",
            { status: "pending_approval" },
            { status: "denied", updated_at: BASE_TIME + 9 },
          ),
          true,
        );
        assert.equal(await tx.revokeKey("key-1", BASE_TIME), true);
        await tx.touchKey("key-1", BASE_TIME + 9);
        assert.equal(
          await tx.updateAgent(agentRow(1, { version: 2, suspended_at: BASE_TIME + 9, updated_at: BASE_TIME + 9 })),
          true,
        );
        assert.equal(await tx.updatePolicy(policyRow(1, { active_version: 1, updated_at: BASE_TIME + 9 })), true);
        const waiting = { state: "waiting", attempts: 0 } as const;
        assert.equal(
          await tx.updateDelivery("delivery-1", waiting, { state: "dead", updated_at: BASE_TIME - 1 }),
          true,
        );
        await tx.releaseLimitUses("action-1");
        const { version = 0 } = (await tx.document("notes", "a")) ?? {};
        assert.ok(((await tx.putDocument(documentRow("a", { value: "[]" }), version)) ?? 0) > version);
        await tx.putMeta("origin", "other");
        throw new Error("no");
      }),
      /no/,
    );
    assert.deepEqual(await readEverything(storage), before);
  });

  test("a transaction reads its own writes, which no other read returns before the commit", async ({ storage }) => {
    await storage.write(async (tx) => {
      await writeEverything(tx);
      assert.deepEqual(await readEverything(storage), EMPTY_STORE);
      await turn();
      assert.deepEqual(await readEverything(storage), EMPTY_STORE);
      const written = await readEverything(tx);
      for (const [name, value] of Object.entries(written))
        assert.notDeepEqual(value, EMPTY_STORE[name as keyof typeof EMPTY_STORE], name);
    });
    assert.equal((await storage.head()).size, 2);
  });

  test("concurrent writes do not lose updates", async ({ storage }) => {
    await storage.write((tx) => tx.putMeta("n", "0"));
    await Promise.all(
      Array.from({ length: 40 }, () =>
        storage.write(async (tx) => {
          const n = Number(await tx.meta("n"));
          await turn();
          await tx.putMeta("n", String(n + 1));
        }),
      ),
    );
    assert.equal(await storage.meta("n"), "40");
  });

  test("each write runs once, one at a time, in the order of the calls", async ({ storage }) => {
    const log: string[] = [];
    await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        storage
          .write(async (tx) => {
            log.push(`begin ${i}`);
            await tx.head();
            await turn();
            log.push(`end ${i}`);
            if (i % 3 === 0) throw new Error(`no ${i}`);
          })
          .catch((error: Error) => log.push(error.message)),
      ),
    );
    const steps = log.filter((line) => !line.startsWith("no"));
    assert.deepEqual(steps, Array.from({ length: 10 }, (_, i) => [`begin ${i}`, `end ${i}`]).flat());
    assert.equal(log.length - steps.length, 4);
  });

  test("statements of a transaction run in the order of their calls, even if none is awaited", async ({ storage }) => {
    const change = (tx: StorageTransaction, status: "approved" | "denied"): Promise<boolean> =>
      tx.updateAction("action-1", { status: "pending_approval" }, { status, updated_at: BASE_TIME });
    const [, , , key, first, second, revocation, action, again, , , revoked] = await storage.write((tx) =>
      Promise.all([
        tx.key("key-1").then((key) => key?.revoked_at),
        tx.insertKey(keyRow(1)),
        tx.insertAction(actionRow(1, { status: "pending_approval" })),
        tx.key("key-1").then((key) => key?.revoked_at),
        change(tx, "approved"),
        change(tx, "denied"),
        tx.revokeKey("key-1", BASE_TIME),
        tx.action("action-1").then((action) => action?.status),
        tx.revokeKey("key-1", BASE_TIME + 1),
        tx.putMeta("name", "first"),
        tx.putMeta("name", "second"),
        tx.key("key-1").then((key) => key?.revoked_at),
      ]),
    );
    assert.deepEqual(
      [key, first, second, revocation, action, again, revoked],
      [null, true, false, true, "approved", false, BASE_TIME],
    );
    assert.equal(await storage.meta("name"), "second");
  });

  test("of several concurrent compare-and-sets, only one succeeds", async ({ storage }) => {
    await storage.write((tx) => tx.insertAction(actionRow(1, { status: "pending_approval" })));
    const won = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        storage.write((tx) =>
          tx.updateAction(
            "action-1",
            { status: "pending_approval" },
            { status: "approved", updated_at: BASE_TIME + i },
          ),
        ),
      ),
    );
    assert.deepEqual(won, [true, ...Array.from({ length: 7 }, () => false)]);
    assert.equal((await storage.action("action-1"))?.updated_at, BASE_TIME);
  });

  test("a failed statement makes the transaction fail, even if its error is ignored", async ({ storage }) => {
    await storage.write((tx) => tx.insertKey(keyRow(1)));
    await assert.rejects(
      storage.write(async (tx) => {
        await tx.putMeta("before", "x");
        await tx.insertKey(keyRow(1)).catch(() => undefined);
        await assert.rejects(tx.putMeta("after", "x"), isStorageError);
        await assert.rejects(tx.head(), isStorageError);
        return "looks fine";
      }),
      isStorageError,
    );
    assert.equal(await storage.meta("before"), null);
    assert.equal(await storage.meta("after"), null);
    await storage.write((tx) => tx.putMeta("next", "x"));
    assert.equal(await storage.meta("next"), "x");
  });

  test("statements that run concurrently with a failed statement, or are not awaited, are rolled back", async ({
    storage,
  }) => {
    const tiles = Array.from({ length: 50 }, (_, i) => tileRow(0, i));
    await assert.rejects(
      storage.write((tx) => tx.append([entryRow(0, { agent_id: "\ud800" })], tiles, headRow(1))),
      isStorageError,
    );
    const entries = Array.from({ length: 300 }, (_, i) => entryRow(i));
    await assert.rejects(
      storage.write((tx) => {
        void tx.append(entries, [], headRow(300)).catch(() => undefined);
        return Promise.reject(new Error("no"));
      }),
      /no/,
    );
    await storage.write((tx) => tx.putMeta("next", "x"));
    assert.deepEqual(await storage.tileRoots(0, 0, 50), []);
    assert.deepEqual(await storage.entries(0, 300), []);
    assert.equal((await storage.head()).size, 0);
  });

  test("a transaction rejects calls after its work has ended, even within the next transaction", async ({
    storage,
  }) => {
    let stale: StorageTransaction | undefined;
    await storage.write(async (tx) => {
      stale = tx;
    });
    const kept = stale as StorageTransaction;
    await assert.rejects(kept.putMeta("late", "x"), isStorageError);
    await assert.rejects(kept.head(), isStorageError);
    await storage.write(async (tx) => {
      await assert.rejects(kept.putMeta("late", "x"), isStorageError);
      await tx.putMeta("in time", "x");
    });
    assert.equal(await storage.meta("late"), null);
    assert.equal(await storage.meta("in time"), "x");
  });

  test("a transaction whose work threw also rejects later calls", async ({ storage }) => {
    let stale: StorageTransaction | undefined;
    await assert.rejects(
      storage.write(async (tx) => {
        stale = tx;
        throw new Error("no");
      }),
      /no/,
    );
    await assert.rejects((stale as StorageTransaction).putMeta("late", "x"), isStorageError);
    assert.equal(await storage.meta("late"), null);
  });

  test("rows are copied: changes of an argument or a result do not change the store", async ({ storage }) => {
    const key = keyRow(1);
    await storage.write(async (tx) => {
      const [entry] = await appendEntries(tx, 1);
      await tx.insertKey(key);
      (entry as { bytes: Uint8Array }).bytes.fill(0);
    });
    key.scopes.push("admin");
    const out = await storage.key("key-1");
    out?.scopes.push("admin");
    (await storage.head()).root.fill(0);
    (await storage.entries(0, 1))[0]?.leaf_hash.fill(0);
    assert.deepEqual((await storage.key("key-1"))?.scopes, ["actions:submit", "actions:read"]);
    assert.deepEqual((await storage.head()).root, headRow(1).root);
    assert.deepEqual((await storage.entries(0, 1))[0]?.bytes, new TextEncoder().encode('{"seq":0}'));
    assert.notDeepEqual((await storage.leafHashes(0, 1))[0], new Uint8Array(32));
  });
}
