/** One read of the head for all who wait for it: each answer was read after it was asked for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedRead } from "../../src/ledger/shared-read.ts";

test("who asks while a read is under way shares the next one, and never that one", async () => {
  const ends: ((value: number) => void)[] = [];
  let begun = 0;
  const read = sharedRead(() => {
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

test("a read that fails is told to those who share it, and to nobody else", async () => {
  let fails = true;
  const read = sharedRead(() => (fails ? ((fails = false), Promise.reject(new Error("gone"))) : Promise.resolve(2)));
  const [first, second] = await Promise.allSettled([read(), read()]);
  assert.deepEqual([first.status, second.status === "fulfilled" && second.value], ["rejected", 2]);
});
