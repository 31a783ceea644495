/** Cases for readers and for processes that share work: read-only `open`, `schema`, leases. */
import assert from "./assert.ts";
import { StorageError, type StorageErrorKind } from "../../contract/storage.ts";
import type { DefineCase } from "./rows.ts";

const isErrorOfKind =
  (kind: StorageErrorKind) =>
  (error: unknown): boolean =>
    error instanceof StorageError && error.kind === kind;

/** Duration of a lease that does not expire during a test. Milliseconds. */
const TERM = 3_600_000;

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

export function sharingCases(test: DefineCase): void {
  test("a store that was opened read-only returns stored data and rejects writes", async ({ storage }) => {
    await storage.write((tx) => tx.putMeta("a", "1"));
    await storage.close();
    await storage.open({ readOnly: true });
    assert.equal(await storage.meta("a"), "1");
    assert.equal((await storage.head()).size, 0);
    let ran = false;
    await assert.rejects(
      storage.write(async () => void (ran = true)),
      isErrorOfKind("readonly"),
    );
    assert.equal(ran, false);
    await assert.rejects(storage.ping(), isErrorOfKind("readonly"));
    await assert.rejects(storage.lease("job", "one", 10), isErrorOfKind("readonly"));
    await storage.close();
    await storage.open();
    await storage.write((tx) => tx.putMeta("a", "2"));
    assert.equal(await storage.meta("a"), "2");
  });

  test("an open store has applied every migration that this version knows", async ({ storage }) => {
    const { applied, known: newest } = await storage.schema();
    assert.equal(applied, newest);
    assert.ok(newest >= 1);
  });

  test("a lease has one holder at a time, until it is released", async ({ storage }) => {
    assert.equal(await storage.lease("job", "one", TERM), true);
    assert.equal(await storage.lease("job", "two", TERM), false);
    assert.equal(await storage.lease("other job", "two", TERM), true, "leases with different names are independent");
    assert.equal(await storage.lease("job", "one", TERM), true, "the holder can renew the lease");
    await storage.release("job", "two");
    assert.equal(await storage.lease("job", "two", TERM), false, "only the holder can release the lease");
    await storage.release("job", "one");
    assert.equal(await storage.lease("job", "two", TERM), true, "the holder can release the lease");
    assert.equal(await storage.lease("job", "one", TERM), false);
  });

  test("a lease expires", async ({ storage }) => {
    assert.equal(await storage.lease("job", "one", 1), true);
    while (!(await storage.lease("job", "two", TERM))) await turn();
    assert.equal(await storage.lease("job", "one", TERM), false);
  });

  test("active leases are listed, sorted by name", async ({ storage }) => {
    await storage.lease("b", "two", TERM);
    await storage.lease("a", "one", TERM);
    await storage.lease("c", "one", 1);
    while ((await storage.leases(TERM)).length > 2) await turn();
    assert.deepEqual(await storage.leases(TERM), [
      { name: "a", holder: "one" },
      { name: "b", holder: "two" },
    ]);
    await storage.release("a", "one");
    assert.deepEqual(await storage.leases(TERM), [{ name: "b", holder: "two" }]);
  });

  test("of many concurrent requests for a free lease, only one acquires it", async ({ storage }) => {
    const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => storage.lease("job", `holder ${i}`, TERM)));
    assert.equal(answers.filter((got) => got).length, 1);
  });

  test("acquiring a lease does not change the ledger", async ({ storage }) => {
    const before = await storage.head();
    await storage.lease("job", "one", TERM);
    assert.deepEqual(await storage.head(), before);
  });
}
