/** A key's pending actions are counted only when the entries since the last count could have reached the limit. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createPendingBounds } from "../../src/ledger/commit/pending-bounds.ts";

/** Pending actions of each key, and the number of counts. */
function fixture(pending: Record<string, number>) {
  const bounds = createPendingBounds();
  const reads: string[] = [];
  const tx = {
    pendingCount(visibility: object) {
      const { key_id } = visibility as { key_id: string };
      reads.push(key_id);
      return Promise.resolve(pending[key_id] ?? 0);
    },
  };
  const isBelow = (key: string, limit: number, base: number, size = base): Promise<boolean> =>
    bounds.isBelow(tx, key, limit, { now: 0, base, size });
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
