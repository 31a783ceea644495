/** Rows are counted only when the entries since the last count could have reached the limit. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createCountBounds } from "../../src/ledger/commit/count-bounds.ts";

/** Pending actions of each key, and the number of counts. */
function fixture(pending: Record<string, number>) {
  const bounds = createCountBounds();
  const reads: string[] = [];
  function isBelow(key: string, limit: number, base: number, size = base): Promise<boolean> {
    const count = (): Promise<number> => {
      reads.push(key);
      return Promise.resolve(pending[key] ?? 0);
    };
    return bounds.isBelow(key, limit, count, { base, size });
  }
  return { pending, reads, isBelow };
}

it("a count is repeated when later entries could have reached the limit", async () => {
  const { pending, reads, isBelow } = fixture({ a: 4 });
  assert.equal(await isBelow("a", 10, 100), true);
  pending["a"] = 9;
  assert.equal(await isBelow("a", 10, 105), true, "9 at most");
  assert.deepEqual(reads, ["a"]);
  assert.equal(await isBelow("a", 10, 106), true);
  assert.deepEqual(reads, ["a", "a"]);
  pending["a"] = 10;
  assert.equal(await isBelow("a", 10, 107), false);
  pending["a"] = 3;
  assert.equal(await isBelow("a", 10, 107), true);
  assert.equal(await isBelow("b", 10, 107), true);
  assert.deepEqual(reads, ["a", "a", "a", "a", "b"]);
});

it("a count within a batch that is rolled back does not admit more actions", async () => {
  const { pending, isBelow } = fixture({ a: 10 });
  // The batch ends three actions with three entries, and is rolled back.
  pending["a"] = 7;
  assert.equal(await isBelow("a", 10, 100, 103), true);
  pending["a"] = 10;
  assert.equal(await isBelow("a", 10, 100), false);
});
