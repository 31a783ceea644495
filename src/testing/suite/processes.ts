/**
 * Cases for a second process on the same store: an exclusive store rejects the process, and other stores run the
 * transactions one at a time.
 */
import assert from "./assert.ts";
import { setImmediate as turn } from "node:timers/promises";
import { StorageError, type Storage } from "../../contract/storage.ts";
import { appendEntries, type DefineCase } from "./rows.ts";

const isLocked = (error: unknown): boolean => error instanceof StorageError && error.kind === "locked";

export function processCases(test: DefineCase): void {
  test("while an exclusive store is open, a second process can only read it", async ({ storage, another }) => {
    await storage.write((tx) => tx.putMeta("a", "1"));
    const other = await another();
    assert.equal(other.exclusive, storage.exclusive);
    if (!storage.exclusive) return;
    await assert.rejects(other.open(), isLocked);
    await storage.write((tx) => tx.putMeta("a", "2"));
    assert.equal(await storage.meta("a"), "2", "the process that has the store continues to work");
    await other.open({ readOnly: true });
    assert.equal(await other.meta("a"), "2");
    await other.close();
    await storage.close();
    await other.open();
    await assert.rejects(storage.open(), isLocked);
    assert.equal(await other.meta("a"), "2");
  });

  test("transactions of processes that share a store run one at a time, and lose no updates", async ({
    storage,
    another,
  }) => {
    if (storage.exclusive) return;
    const other = await another();
    await other.open();
    await storage.write((tx) => tx.putMeta("n", "0"));
    /** The lock of the head prevents changes between the read and the write of a value. */
    const add = async (storage: Storage): Promise<number> => {
      try {
        await storage.write(async (tx) => {
          const n = Number(await tx.meta("n"));
          await appendEntries(tx, 1);
          await turn();
          await tx.putMeta("n", String(n + 1));
        });
        return 1;
      } catch (error) {
        // A store does not have to wait for another process. If it does not wait, it must fail with "locked" and
        // without an effect.
        if (!isLocked(error)) throw error;
        return 0;
      }
    };
    let added = 0;
    for (let round = 0; round < 10; round++) {
      for (const count of await Promise.all([storage, other, storage, other].map(add))) added += count;
      added += await add(round % 2 === 0 ? storage : other);
    }
    assert.ok(added >= 10, "a process without competition must get the lock");
    for (const each of [storage, other]) {
      assert.equal(await each.meta("n"), String(added));
      assert.equal((await each.head()).size, added);
      assert.deepEqual(
        (await each.entries(0, added + 9)).map(({ seq }) => seq),
        Array.from({ length: added }, (_, i) => i),
      );
    }
  });

  test("only one of the processes that share a store holds a lease", async ({ storage, another }) => {
    if (storage.exclusive) return;
    const other = await another();
    await other.open();
    // A store does not have to wait for another process. If it does not wait, it must fail with "locked".
    const ask = (storage: Storage, holder: string): Promise<boolean> =>
      storage.lease("job", holder, 60_000).catch((error: unknown) => {
        if (!isLocked(error)) throw error;
        return false;
      });
    const got = await Promise.all(
      Array.from({ length: 6 }, (_, i) => ask(i % 2 === 0 ? storage : other, `holder ${i}`)),
    );
    for (const [i, one] of [storage, other].entries()) got.push(await ask(one, `late holder ${i}`));
    assert.equal(got.filter(Boolean).length, 1);
  });
}
