/** A commit of one process reaches the listeners of another process on the same store. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Storage } from "../../src/contract/storage.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";
import { until } from "../support/wait.ts";

test("a notification of another process's commit is handled although a request has already read the new head", async (t) => {
  // Nothing polls.
  t.mock.timers.enable({ apis: ["setInterval"] });
  const memory = memoryStorage();
  await memory.open();
  const words: ((size?: number) => void)[] = [];
  const storage: Storage = {
    ...memory,
    exclusive: false,
    watch: (changed) => (words.push(changed), Promise.resolve(() => Promise.resolve())),
  };
  const [here, there] = await Promise.all([openLedgerOn(storage), openLedgerOn(storage)]);
  const got: number[] = [];
  const sizes: number[] = [];
  here.onGrowth((size) => sizes.push(size));

  await there.transact(async (tx) => tx.record(entry(0)));
  assert.equal((await here.head()).size, 1);
  for (const word of words) word(1);
  await until("the listeners of the other process are notified", () => sizes.length > 0, 1);
  assert.deepEqual(sizes, [1]);

  const stop = here.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)));
  await there.transact(async (tx) => tx.record(entry(1)));
  assert.equal((await here.head()).size, 2);
  for (const word of words) word(2);
  await until("subscribers get the entry", () => got.length > 0, 1);
  assert.deepEqual(got, [1]);
  stop();
  await Promise.all([here.close(), there.close()]);
});
