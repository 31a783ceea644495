/** What `write`, `open`, `close` and `ping` promise, whatever is written. */
import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { StorageError, type StorageReader, type StorageTransaction } from "../../contract/storage.ts";
import { EMPTY_ROOT } from "../../domain/merkle.ts";
import { actionRow, appendSome, approvalRow, hexOf, idempotencyRow, keyRow, policyRow, setRow, T0, tileRow, versionRow, headRow, type Case } from "./rows.ts";

/** One row of every kind, through every method that inserts. */
async function writeEverything(tx: StorageTransaction): Promise<void> {
  const entries = await appendSome(tx, 2);
  await tx.append([], [tileRow(0, 0)], headRow(entries.length, { policy_set: setRow(1).digest, epoch: 1 }));
  await tx.putCheckpoint(2, "note");
  await tx.insertAction(actionRow(1, { status: "pending_approval", expires_at: T0 }));
  await tx.insertApproval(approvalRow("action-1", "owner:dana"));
  await tx.insertIdempotency(idempotencyRow("a"));
  await tx.insertKey(keyRow(1));
  await tx.insertPolicy(policyRow(1));
  await tx.insertPolicyVersion(versionRow("policy-1", 1));
  await tx.putPolicySet(setRow(1));
  await tx.putMeta("origin", "example.com/log");
}

async function everything(reader: StorageReader): Promise<Record<string, unknown>> {
  return {
    head: await reader.head(),
    checkpoint: await reader.checkpoint(),
    entries: await reader.entries(0, 10),
    entryByHash: await reader.entryByHash((await reader.leafHashes(0, 1))[0] ?? new Uint8Array(32)),
    entriesOfAction: await reader.entriesOfAction("action-1"),
    leafHashes: await reader.leafHashes(0, 10),
    tile: await reader.tile(0, 0),
    tileRoots: await reader.tileRoots(0, 0, 10),
    action: await reader.action("action-1"),
    actions: await reader.actions({ visibility: { all: true }, limit: 10 }),
    overdue: await reader.overdueActions(T0, 10),
    nextExpiry: await reader.nextExpiry(),
    approvals: await reader.approvals("action-1"),
    idempotency: await reader.idempotency("key-1", "POST /v1/actions", "a"),
    keyByHash: await reader.keyByHash(keyRow(1).hash),
    key: await reader.key("key-1"),
    keys: await reader.keys(),
    policyByName: await reader.policyByName("policy 1"),
    policies: await reader.policies(),
    policyVersion: await reader.policyVersion("policy-1", 1),
    policySet: await reader.policySet(setRow(1).digest),
    meta: await reader.meta("origin"),
  };
}

const NOTHING = {
  head: { size: 0, root: EMPTY_ROOT, edge: [], policy_set: null, epoch: 0 },
  checkpoint: null, entries: [], entryByHash: null, entriesOfAction: [], leafHashes: [], tile: null, tileRoots: [],
  action: null, actions: [], overdue: [], nextExpiry: null, approvals: [], idempotency: null, keyByHash: null,
  key: null, keys: [], policyByName: null, policies: [], policyVersion: null, policySet: null, meta: null,
};

const isStorageError = (error: unknown): boolean => error instanceof StorageError;

export function transactionCases(test: Case): void {
  test("an empty store has a head of size 0 and nothing else", async ({ storage }) => {
    assert.deepEqual(await everything(storage), NOTHING);
    assert.equal(typeof storage.exclusive, "boolean");
  });

  test("write answers what its work answers, and its rows are there", async ({ storage }) => {
    assert.equal(await storage.write(async (tx) => (await writeEverything(tx), "done")), "done");
    const found = await everything(storage);
    for (const [name, value] of Object.entries(found)) assert.notDeepEqual(value, NOTHING[name as keyof typeof NOTHING], name);
  });

  test("a throw rolls everything back and is passed on unchanged", async ({ storage }) => {
    const error = new Error("no");
    await assert.rejects(storage.write(async (tx) => {
      await writeEverything(tx);
      throw error;
    }), (thrown) => thrown === error);
    assert.deepEqual(await everything(storage), NOTHING);
  });

  test("what is thrown need not be an Error", async ({ storage }) => {
    for (const thrown of ["text", null, 7]) {
      const outcome = await storage.write(async (tx) => {
        await tx.putMeta("a", "b");
        throw thrown;
      }).then(() => "resolved", (error: unknown) => ({ error }));
      assert.deepEqual(outcome, { error: thrown });
    }
    assert.equal(await storage.meta("a"), null);
  });

  test("a throw after a refused value, or with a code of its own, is passed on unchanged too", async ({ storage }) => {
    const error = Object.assign(new TypeError("no"), { code: "ERR_OF_THE_CALLER" });
    for (const value of ["fine", "\ud800"]) {
      await assert.rejects(storage.write(async (tx) => {
        await tx.putMeta("a", "b");
        await tx.putMeta("c", value).catch(() => undefined);
        throw error;
      }), (thrown) => thrown === error);
      assert.equal(await storage.meta("a"), null);
    }
  });

  test("a throw undoes updates as well as inserts", async ({ storage }) => {
    await storage.write(writeEverything);
    const before = await everything(storage);
    await assert.rejects(storage.write(async (tx) => {
      await appendSome(tx, 3);
      await tx.putCheckpoint(5, "later");
      assert.equal(await tx.updateAction("action-1", { status: "pending_approval" }, { status: "denied", updated_at: T0 + 9 }), true);
      assert.equal(await tx.revokeKey("key-1", T0), true);
      assert.equal(await tx.updatePolicy("policy-1", { active_version: 1, updated_at: T0 + 9 }), true);
      await tx.putMeta("origin", "other");
      throw new Error("no");
    }), /no/);
    assert.deepEqual(await everything(storage), before);
  });

  test("a transaction sees its own writes, others see none of them before it is committed", async ({ storage }) => {
    await storage.write(async (tx) => {
      await writeEverything(tx);
      assert.deepEqual(await everything(storage), NOTHING);
      await turn();
      assert.deepEqual(await everything(storage), NOTHING);
      const own = await everything(tx);
      for (const [name, value] of Object.entries(own)) assert.notDeepEqual(value, NOTHING[name as keyof typeof NOTHING], name);
    });
    assert.equal((await storage.head()).size, 2);
  });

  test("concurrent writes lose no update", async ({ storage }) => {
    await storage.write((tx) => tx.putMeta("n", "0"));
    await Promise.all(Array.from({ length: 40 }, () => storage.write(async (tx) => {
      const n = Number(await tx.meta("n"));
      await turn();
      await tx.putMeta("n", String(n + 1));
    })));
    assert.equal(await storage.meta("n"), "40");
  });

  test("writes run one at a time, in the order of their calls, once each", async ({ storage }) => {
    const log: string[] = [];
    await Promise.all(Array.from({ length: 10 }, (_, i) => storage.write(async (tx) => {
      log.push(`begin ${i}`);
      await tx.head();
      await turn();
      log.push(`end ${i}`);
      if (i % 3 === 0) throw new Error(`no ${i}`);
    }).catch((error: Error) => log.push(error.message))));
    const steps = log.filter((line) => !line.startsWith("no"));
    assert.deepEqual(steps, Array.from({ length: 10 }, (_, i) => [`begin ${i}`, `end ${i}`]).flat());
    assert.equal(log.length - steps.length, 4);
  });

  test("a compare-and-set that two race for succeeds once", async ({ storage }) => {
    await storage.write((tx) => tx.insertAction(actionRow(1, { status: "pending_approval" })));
    const won = await Promise.all(Array.from({ length: 8 }, (_, i) => storage.write((tx) =>
      tx.updateAction("action-1", { status: "pending_approval" }, { status: "approved", updated_at: T0 + i }))));
    assert.deepEqual(won, [true, ...Array.from({ length: 7 }, () => false)]);
    assert.equal((await storage.action("action-1"))?.updated_at, T0);
  });

  test("a statement that failed loses the transaction, also when its error is swallowed", async ({ storage }) => {
    await storage.write((tx) => tx.insertKey(keyRow(1)));
    await assert.rejects(storage.write(async (tx) => {
      await tx.putMeta("before", "x");
      await tx.insertKey(keyRow(1)).catch(() => undefined);
      await assert.rejects(tx.putMeta("after", "x"), isStorageError);
      await assert.rejects(tx.head(), isStorageError);
      return "looks fine";
    }), isStorageError);
    assert.equal(await storage.meta("before"), null);
    assert.equal(await storage.meta("after"), null);
    await storage.write((tx) => tx.putMeta("next", "x"));
    assert.equal(await storage.meta("next"), "x");
  });

  test("a transaction is of no use once its work is over, not even inside the next one", async ({ storage }) => {
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

  test("a transaction whose work threw is over too", async ({ storage }) => {
    let stale: StorageTransaction | undefined;
    await assert.rejects(storage.write(async (tx) => {
      stale = tx;
      throw new Error("no");
    }), /no/);
    await assert.rejects((stale as StorageTransaction).putMeta("late", "x"), isStorageError);
    assert.equal(await storage.meta("late"), null);
  });

  test("rows are values: changing what went in or came out changes nothing", async ({ storage }) => {
    const key = keyRow(1);
    await storage.write(async (tx) => {
      const [entry] = await appendSome(tx, 1);
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

  test("open and close may be called again", async ({ storage }) => {
    await storage.open();
    await storage.write((tx) => tx.putMeta("a", "1"));
    await Promise.all([storage.open(), storage.open()]);
    await storage.close();
    await storage.close();
    await storage.open();
    assert.equal(await storage.meta("a"), "1");
  });

  test("a closed store refuses everything with StorageError", async ({ storage }) => {
    await storage.close();
    let ran = false;
    await assert.rejects(storage.head(), isStorageError);
    await assert.rejects(storage.meta("a"), isStorageError);
    await assert.rejects(storage.ping(), isStorageError);
    await assert.rejects(storage.write(async () => {
      ran = true;
    }), isStorageError);
    assert.equal(ran, false);
  });

  test("close waits for running and waiting work", async ({ storage }) => {
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

  test("ping resolves on a store that takes writes, and changes nothing one can read", async ({ storage }) => {
    await storage.write(writeEverything);
    const before = await everything(storage);
    await Promise.all([storage.ping(), storage.ping(), storage.write((tx) => tx.putMeta("x", "y"))]);
    assert.deepEqual(await everything(storage), before);
  });

  test("reopening keeps everything", async ({ storage, reopen }) => {
    await storage.write(writeEverything);
    const before = await everything(storage);
    const again = await reopen();
    assert.deepEqual(await everything(again), before);
    await again.write((tx) => appendSome(tx, 1));
    assert.equal((await again.head()).size, 3);
  });

  test("what was rolled back stays away after reopening", async ({ storage, reopen }) => {
    await assert.rejects(storage.write(async (tx) => {
      await writeEverything(tx);
      throw new Error("no");
    }), /no/);
    assert.deepEqual(await everything(await reopen()), NOTHING);
  });

  test("meta is written over, and unknown names are null", async ({ storage }) => {
    await storage.write((tx) => tx.putMeta("a", "1"));
    await storage.write((tx) => tx.putMeta("a", hexOf("2")));
    assert.equal(await storage.meta("a"), hexOf("2"));
    assert.equal(await storage.meta("b"), null);
  });
}
