/** What is promised to those who only look, and to processes that share work: `open` to read, `schema`, `lease`. */
import assert from "node:assert/strict";
import { StorageError, type StorageErrorKind } from "../../contract/storage.ts";
import type { Case } from "./rows.ts";

const ofKind =
  (kind: StorageErrorKind) =>
  (error: unknown): boolean =>
    error instanceof StorageError && error.kind === kind;

export function sharingCases(test: Case): void {
  test("a store that was opened to be read shows everything and takes nothing", async ({ storage }) => {
    await storage.write((tx) => tx.putMeta("a", "1"));
    await storage.close();
    await storage.open({ readOnly: true });
    assert.equal(await storage.meta("a"), "1");
    assert.equal((await storage.head()).size, 0);
    let ran = false;
    await assert.rejects(
      storage.write(async () => void (ran = true)),
      ofKind("readonly"),
    );
    assert.equal(ran, false);
    await assert.rejects(storage.ping(), ofKind("readonly"));
    await assert.rejects(storage.lease("job", "one", 0, 10), ofKind("readonly"));
    await storage.close();
    await storage.open();
    await storage.write((tx) => tx.putMeta("a", "2"));
    assert.equal(await storage.meta("a"), "2");
  });

  test("an open store has every migration that this version knows", async ({ storage }) => {
    const { applied, known } = await storage.schema();
    assert.equal(applied, known);
    assert.ok(known >= 1);
  });

  test("a lease has one holder at a time, until it ends or is given up", async ({ storage }) => {
    assert.equal(await storage.lease("job", "one", 1000, 2000), true);
    assert.equal(await storage.lease("job", "two", 1000, 2000), false);
    assert.equal(await storage.lease("job", "two", 1999, 3000), false);
    assert.equal(await storage.lease("other job", "two", 1999, 3000), true, "leases are told apart by name");
    assert.equal(await storage.lease("job", "one", 1500, 2500), true, "the holder may hold on");
    assert.equal(await storage.lease("job", "two", 2499, 3000), false);
    assert.equal(await storage.lease("job", "two", 2500, 3000), true, "it ends at its end");
    assert.equal(await storage.lease("job", "one", 2600, 3600), false);
    assert.equal(await storage.lease("job", "two", 2600, 0), true);
    assert.equal(await storage.lease("job", "one", 2600, 3600), true, "it can be given up");
  });

  test("leases that have not ended are listed, in order of name", async ({ storage }) => {
    await storage.lease("b", "two", 1000, 3000);
    await storage.lease("a", "one", 1000, 2000);
    await storage.lease("c", "one", 1000, 1500);
    assert.deepEqual(await storage.leases(1500), [
      { name: "a", holder: "one", until: 2000 },
      { name: "b", holder: "two", until: 3000 },
    ]);
    await storage.lease("a", "one", 1600, 0);
    assert.deepEqual(
      (await storage.leases(1600)).map(({ name }) => name),
      ["b"],
    );
    assert.deepEqual(await storage.leases(3000), []);
  });

  test("of many who ask for a free lease at once one gets it", async ({ storage }) => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => storage.lease("job", `holder ${i}`, 1000, 2000)),
    );
    assert.equal(answers.filter((got) => got).length, 1);
  });

  test("taking a lease changes nothing of the ledger", async ({ storage }) => {
    const before = await storage.head();
    await storage.lease("job", "one", 1000, 2000);
    assert.deepEqual(await storage.head(), before);
  });
}
