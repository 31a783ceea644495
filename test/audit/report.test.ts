/** The audit ends on a store whose index has a cycle. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CopiedRow, StorageCopying } from "../../src/contract/storage.ts";
import { checkEachRow } from "../../src/audit/report.ts";

test("repeated rows are a fault, and end the read", async () => {
  // The third page continues with the second, as in a b-tree with a damaged key.
  const next = new Map<unknown, CopiedRow[]>([
    [undefined, [{ name: "a" }, { name: "b" }]],
    ["b", [{ name: "c" }]],
    ["c", [{ name: "d" }]],
    ["d", [{ name: "c" }]],
  ]);
  let reads = 0;
  const copying = {
    read: async (_: string, after: CopiedRow | null) => (reads++ > 100 ? [] : next.get(after?.["name"])),
  } as unknown as StorageCopying;
  const faults: string[] = [];
  await checkEachRow(
    copying,
    "meta",
    (fault) => void faults.push(fault),
    async () => undefined,
  );
  assert.deepEqual(faults, ["an index of meta is damaged: it leads back to rows that were read"]);
  assert.ok(reads < 20);
});
