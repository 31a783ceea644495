/** Slices of long reads: a single reader is not delayed, and several leave half of the time to decisions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createReadSlots } from "../../src/http/read-slots.ts";

/** Runs this many readers of three slices, each of which takes `ms` on a simulated clock. Returns all pauses. */
async function pausesOf(readers: number, ms: number): Promise<number[]> {
  let clock = 0;
  const pauses: number[] = [];
  const slot = createReadSlots(
    () => clock,
    (resume, length) => {
      pauses.push(length);
      resume();
    },
  );
  const read = async (): Promise<void> => {
    for (let slice = 0; slice < 3; slice++) {
      await slot();
      clock += ms;
    }
  };
  await Promise.all(Array.from({ length: readers }, read));
  return pauses;
}

test("a slice is followed by a pause of its length while other readers wait", async () => {
  assert.deepEqual(await pausesOf(2, 20), [20, 20, 20, 20, 20]);
  assert.deepEqual(await pausesOf(4, 900), Array(11).fill(50), "a pause is bounded");
});

test("a single reader, and slices that take no time, are not delayed", async () => {
  assert.deepEqual(await pausesOf(1, 20), []);
  assert.deepEqual(await pausesOf(4, 0), []);
});

test("keys take turns, so that many readers of one key do not delay another key's", async () => {
  const slot = createReadSlots(undefined, (resume) => resume());
  const order: string[] = [];
  const read = async (key: string): Promise<void> => {
    await slot(key);
    order.push(key);
  };
  await Promise.all(["a", "a", "a", "a", "b", "b", "c"].map(read));
  assert.deepEqual(order, ["a", "b", "c", "a", "b", "a", "a"]);
});
