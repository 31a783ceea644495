/** Cases for the ledger's tables: no gaps, unchanged bytes, a head that only grows. */
import assert from "./assert.ts";
import { type EntryRow, type EntryType, type LedgerHead, type TileRow } from "../../contract/storage.ts";
import { hashLeaf } from "../../domain/merkle.ts";
import {
  actionRow,
  appendEntries,
  entryRow,
  leafHashOfText,
  readBareHead,
  headRow,
  policySetRow,
  tileRow,
  type DefineCase,
  isStorageError,
} from "./rows.ts";

export function ledgerCases(test: DefineCase): void {
  entryCases(test);
  appendCases(test);
  tileCases(test);
  checkpointCases(test);
}

function entryCases(test: DefineCase): void {
  test("entries are returned as they were stored, by range", async ({ storage }) => {
    const types: EntryType[] = ["decision", "approval", "execution", "policy_set", "api_key", "agent"];
    const rows = types.map((type, seq) =>
      entryRow(seq, seq % 2 === 0 ? { type } : { type, action_id: null, agent_id: null, submitted_by: null }),
    );
    await storage.write((tx) => tx.append(rows, [], headRow(rows.length)));
    assert.deepEqual(await storage.entries(0, 6), rows);
    assert.deepEqual(await storage.entries(2, 4), rows.slice(2, 4));
    assert.deepEqual(await storage.entries(4, 100), rows.slice(4));
    assert.deepEqual(await storage.entries(3, 3), []);
    assert.deepEqual(await storage.entries(4, 2), []);
    assert.deepEqual(await storage.entries(6, 9), []);
    assert.deepEqual(
      await storage.leafHashes(1, 3),
      rows.slice(1, 3).map((row) => row.leaf_hash),
    );
    assert.deepEqual(await storage.leafHashes(6, 9), []);
  });

  test("followed entries are returned in order, without other entries", async ({ storage }) => {
    await storage.write(async (tx) => {
      for (const followed of [false, true, false, true, false, false, true]) await appendEntries(tx, 1, { followed });
    });
    const seqs = async (...query: Parameters<typeof storage.followedEntries>): Promise<number[]> =>
      (await storage.followedEntries(...query)).map(({ seq }) => seq);
    assert.deepEqual(await seqs(0, 9), [1, 3, 6]);
    assert.deepEqual(await seqs(0, 2), [1, 3]);
    assert.deepEqual(await seqs(2, 9), [3, 6]);
    assert.deepEqual(await seqs(7, 9), []);
  });

  test("an entry is found only by its own hash", async ({ storage }) => {
    const rows = await storage.write((tx) => appendEntries(tx, 5));
    for (const row of rows) assert.deepEqual(await storage.entryByHash(row.leaf_hash), row);
    const near = new Uint8Array((rows[0] as EntryRow).leaf_hash);
    near[31] = (near[31] as number) ^ 1;
    assert.equal(await storage.entryByHash(near), null);
    assert.equal(await storage.entryByHash(new Uint8Array(32)), null);
  });

  test("the entries of an action are returned in order, without entries of other actions", async ({ storage }) => {
    const owners = ["a", "b", "a", null, "A", "a", "a"];
    const types: EntryType[] = ["decision", "decision", "approval", "policy_set", "decision", "redecision", "notes:a"];
    const rows = owners.map((action_id, seq) => entryRow(seq, { action_id, type: types[seq] as EntryType }));
    await storage.write(async (tx) => {
      for (const seq of [0, 1, 4]) await tx.insertAction(actionRow(seq, { id: owners[seq] as string }));
      await tx.append(rows, [], headRow(rows.length));
      assert.equal((await tx.entriesOfAction("a")).length, 4, "also within the same transaction");
    });
    assert.deepEqual(
      (await storage.entriesOfAction("a")).map((row) => row.seq),
      [0, 2, 5, 6],
    );
    assert.deepEqual(
      (await storage.entriesOfAction("A")).map((row) => row.seq),
      [4],
    );
    assert.deepEqual(await storage.entriesOfAction("c"), []);
  });

  test("the largest entry is returned with every byte", async ({ storage, reopen }) => {
    const bytes = Uint8Array.from({ length: 65_535 }, (_, i) => (i * 31 + (i >> 8)) & 0xff);
    const row = entryRow(0, { bytes, leaf_hash: hashLeaf(bytes) });
    // Use a view of a larger buffer. Only the bytes of the view belong to the entry.
    const larger = new Uint8Array(70_000);
    larger.set(bytes, 100);
    await storage.write((tx) =>
      tx.append([{ ...row, bytes: larger.subarray(100, 100 + bytes.length) }], [], headRow(1)),
    );
    assert.deepEqual(await storage.entries(0, 1), [row]);
    assert.deepEqual(await (await reopen()).entryByHash(row.leaf_hash), row);
  });

  test("an entry can be empty", async ({ storage }) => {
    const row = entryRow(0, { bytes: new Uint8Array(0) });
    await storage.write((tx) => tx.append([row], [], headRow(1)));
    assert.deepEqual(await storage.entries(0, 1), [row]);
  });

  test("many entries keep their order over many transactions", async ({ storage, reopen }) => {
    for (let i = 0; i < 12; i++) await storage.write((tx) => appendEntries(tx, 173));
    const reopened = await reopen();
    assert.equal((await reopened.head()).size, 12 * 173);
    const rows = await reopened.entries(0, 12 * 173);
    assert.deepEqual(
      rows.map((row) => row.seq),
      Array.from({ length: 12 * 173 }, (_, i) => i),
    );
    assert.deepEqual(
      await reopened.entries(1000, 1003),
      [1000, 1001, 1002].map((seq) => entryRow(seq)),
    );
  });
}

function appendCases(test: DefineCase): void {
  test("append updates the head together with the entries", async ({ storage }) => {
    const head: LedgerHead = {
      size: 3,
      root: leafHashOfText("r"),
      edge: [leafHashOfText("a"), leafHashOfText("b"), leafHashOfText("c")],
      policy_set: policySetRow(1).digest,
      epoch: 4,
      followed_digest: leafHashOfText("f"),
      seal: "a seal",
    };
    await storage.write(async (tx) => {
      await tx.append([entryRow(0), entryRow(1), entryRow(2)], [], head);
      assert.deepEqual(await readBareHead(tx), head);
    });
    assert.deepEqual(await readBareHead(storage), head);
    await storage.write((tx) => tx.append([entryRow(3)], [], headRow(4, { policy_set: null, epoch: 4 })));
    assert.deepEqual(await readBareHead(storage), headRow(4, { epoch: 4 }));
  });

  test("a transaction can contain several appends", async ({ storage }) => {
    await storage.write(async (tx) => {
      await appendEntries(tx, 2);
      await appendEntries(tx, 3);
    });
    assert.equal((await storage.head()).size, 5);
    assert.deepEqual(
      (await storage.entries(0, 9)).map((row) => row.seq),
      [0, 1, 2, 3, 4],
    );
  });

  test("the head can change without entries: a different policy set, a later epoch", async ({ storage }) => {
    await storage.write((tx) => appendEntries(tx, 2));
    const head = headRow(2, { policy_set: policySetRow(2).digest, epoch: 7 });
    await storage.write((tx) => tx.append([], [], head));
    assert.deepEqual(await readBareHead(storage), head);
    assert.equal((await storage.entries(0, 9)).length, 2);
  });

  const misfits: [string, EntryRow[], LedgerHead][] = [
    ["a gap before the entries", [entryRow(3)], headRow(4)],
    ["an entry that already exists", [entryRow(1)], headRow(2)],
    ["entries that overlap with stored entries", [entryRow(1), entryRow(2)], headRow(3)],
    ["a gap between the entries", [entryRow(2), entryRow(4)], headRow(4)],
    ["the same sequence number twice", [entryRow(2), entryRow(2)], headRow(4)],
    ["entries in descending order", [entryRow(3), entryRow(2)], headRow(4)],
    ["a head that is too large", [entryRow(2)], headRow(4)],
    ["a head that is too small", [entryRow(2)], headRow(2)],
    ["a head that shrinks", [], headRow(1)],
    ["a head that grows without entries", [], headRow(3)],
    ["an epoch that decreases", [entryRow(2)], headRow(3, { epoch: 4 })],
  ];
  for (const [what, entries, head] of misfits) {
    test(`append rejects ${what}, and the transaction fails`, async ({ storage }) => {
      await storage.write((tx) => tx.append([entryRow(0), entryRow(1)], [], headRow(2, { epoch: 5 })));
      const epoch = head.epoch === 0 ? 5 : head.epoch;
      await assert.rejects(
        storage.write(async (tx) => {
          await tx.putMeta("a", "b");
          await tx.append(entries, [], { ...head, epoch }).catch(() => undefined);
        }),
        isStorageError,
      );
      assert.deepEqual(await readBareHead(storage), headRow(2, { epoch: 5 }));
      assert.deepEqual(await storage.entries(0, 9), [entryRow(0), entryRow(1)]);
      assert.equal(await storage.meta("a"), null);
    });
  }
}

function tileCases(test: DefineCase): void {
  test("tiles are found by level and index", async ({ storage }) => {
    const tiles = [tileRow(0, 0), tileRow(0, 1), tileRow(0, 2), tileRow(1, 0)];
    await storage.write((tx) => tx.append([], tiles, headRow(0)));
    for (const tile of tiles) assert.deepEqual(await storage.tile(tile.level, tile.index), tile);
    assert.equal(await storage.tile(1, 1), null);
    assert.equal(await storage.tile(2, 0), null);
  });

  test("roots of tiles are returned in order, and only roots that exist", async ({ storage }) => {
    const tiles = [2, 0, 1].map((index) => tileRow(0, index));
    await storage.write(async (tx) =>
      tx.append(
        Array.from({ length: 3 }, (_, i) => entryRow(i)),
        [...tiles, tileRow(1, 0)],
        headRow(3),
      ),
    );
    const roots = [0, 1, 2].map((index) => tileRow(0, index).root);
    assert.deepEqual(await storage.tileRoots(0, 0, 3), roots);
    assert.deepEqual(await storage.tileRoots(0, 1, 2), roots.slice(1, 2));
    assert.deepEqual(await storage.tileRoots(0, 2, 9), roots.slice(2));
    assert.deepEqual(await storage.tileRoots(0, 3, 9), []);
    assert.deepEqual(await storage.tileRoots(1, 0, 9), [tileRow(1, 0).root]);
  });

  test("a stored tile cannot be replaced", async ({ storage }) => {
    await storage.write((tx) => tx.append([], [tileRow(0, 0)], headRow(0)));
    const other: TileRow = { ...tileRow(0, 0), root: leafHashOfText("other") };
    await assert.rejects(
      storage.write((tx) => tx.append([entryRow(0)], [other], headRow(1))),
      isStorageError,
    );
    assert.deepEqual(await storage.tile(0, 0), tileRow(0, 0));
    assert.equal((await storage.head()).size, 0);
  });
}

/** Cases for the checkpoint and for policy sets. */
function checkpointCases(test: DefineCase): void {
  test("a larger checkpoint is not replaced", async ({ storage, reopen }) => {
    await storage.write((tx) => tx.putCheckpoint(5, "five\n\n— é\n"));
    assert.deepEqual(await storage.checkpoint(), { size: 5, note: "five\n\n— é\n" });
    await storage.write((tx) => tx.putCheckpoint(4, "four"));
    assert.equal((await storage.checkpoint())?.size, 5);
    await storage.write((tx) => tx.putCheckpoint(5, "five again"));
    assert.deepEqual(await storage.checkpoint(), { size: 5, note: "five again" });
    await storage.write((tx) => tx.putCheckpoint(6, "six"));
    assert.deepEqual(await (await reopen()).checkpoint(), { size: 6, note: "six" });
  });

  test("a checkpoint of the empty tree is stored", async ({ storage }) => {
    await storage.write((tx) => tx.putCheckpoint(0, "empty"));
    assert.deepEqual(await storage.checkpoint(), { size: 0, note: "empty" });
  });

  test("a stored policy set does not change when it is stored again", async ({ storage }) => {
    await storage.write((tx) => tx.putPolicySet(policySetRow(1)));
    await storage.write((tx) => tx.putPolicySet({ ...policySetRow(1), document: "{}", created_at: 1 }));
    await storage.write((tx) => tx.putPolicySet(policySetRow(2)));
    assert.deepEqual(await storage.policySet(policySetRow(1).digest), policySetRow(1));
    assert.deepEqual(await storage.policySet(policySetRow(2).digest), policySetRow(2));
    assert.equal(await storage.policySet("ff"), null);
  });
}
