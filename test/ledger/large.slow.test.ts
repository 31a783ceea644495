/** A ledger with more than one tile of tiles: level-1 tiles, proofs across their border, and a restart. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex } from "../../src/domain/hash.ts";
import { verifyConsistency, verifyInclusion } from "../../src/domain/merkle.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import { auditLedger } from "../../src/audit/ledger.ts";
import { memoryStorage } from "../../src/testing/memory-storage.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";

test("66,100 entries: tiles of tiles, proofs and consistency across their border", async () => {
  const storage = memoryStorage();
  await storage.open();
  const open = () => openLedgerOn(storage);
  let ledger = await open();
  const hashes: string[] = [];
  const add = (count: number) =>
    ledger.transact(async (tx) => {
      for (let i = 0; i < count; i++) hashes.push(tx.record(entry(hashes.length)).hash);
    });
  // Sizes before, on and after the borders of tiles of both levels.
  for (const count of [1, 254, 1, 1, 255, 512, 64_000, 511, 1, 1]) await add(count);
  assert.equal(hashes.length, 65_537);
  await add(563);
  assert.ok((await storage.tile(1, 0)) !== null, "65,536 entries fill a tile of level 1");

  const { size, root } = await ledger.checkpoint();
  assert.equal(size, 66_100);
  for (const index of [0, 255, 256, 65_279, 65_280, 65_535, 65_536, 66_099]) {
    const proof = await ledger.inclusion(index);
    assert.ok(
      verifyInclusion({ index, size, leafHash: fromHex(hashes[index] as string), path: proof.path, root }),
      `inclusion of ${index}`,
    );
  }
  for (const first of [1, 255, 256, 257, 65_535, 65_536, 65_537, 66_099, 66_100]) {
    const path = await ledger.consistency(first, size);
    assert.ok(
      verifyConsistency({ first, second: size, firstRoot: await ledger.rootAt(first), secondRoot: root, path }),
      `consistency from ${first}`,
    );
  }
  await ledger.close();
  assert.deepEqual(
    (await auditLedger(storage, { from: 0, keys: () => ({ first: ledger.vkey, changes: [] }), verify: verifyEd25519 }))
      .faults,
    [],
  );
  ledger = await open();
  await add(1);
  const grown = await ledger.checkpoint();
  assert.ok(
    verifyConsistency({
      first: size,
      second: grown.size,
      firstRoot: root,
      secondRoot: grown.root,
      path: await ledger.consistency(size, grown.size),
    }),
  );
  await ledger.close();
});
