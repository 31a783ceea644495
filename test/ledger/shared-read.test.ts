/** Concurrent waiters share one read of the head, which starts after their request. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createSharedRead } from "../../src/ledger/shared-read.ts";

test("a waiter that arrives during a read shares the next one, not the current one", async () => {
  const ends: ((value: number) => void)[] = [];
  let begun = 0;
  const read = createSharedRead(() => {
    begun++;
    return new Promise<number>((resolve) => ends.push(resolve));
  });
  const first = read();
  const later = [read(), read(), read()];
  assert.equal(begun, 1);
  ends[0]?.(1);
  assert.equal(await first, 1);
  while (begun < 2) await new Promise((resolve) => setImmediate(resolve));
  const last = read();
  ends[1]?.(2);
  assert.deepEqual(await Promise.all(later), [2, 2, 2]);
  while (begun < 3) await new Promise((resolve) => setImmediate(resolve));
  ends[2]?.(3);
  assert.equal(await last, 3);
});

test("a failed read is reported to its waiters, and to no others", async () => {
  let fails = true;
  const read = createSharedRead(() =>
    fails ? ((fails = false), Promise.reject(new Error("gone"))) : Promise.resolve(2),
  );
  const [first, second] = await Promise.allSettled([read(), read()]);
  assert.deepEqual([first.status, second.status === "fulfilled" && second.value], ["rejected", 2]);
});
