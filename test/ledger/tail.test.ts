/** The tail where other processes commit too: each entry once, in order, whoever tells of it first. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { EntryRow, StorageReader } from "../../src/contract/storage.ts";
import { createTail } from "../../src/ledger/tail.ts";
import { createLogger } from "../../src/serve/log.ts";
import { entryRow } from "../../src/testing/suite/rows.ts";

const LOG = createLogger("silent");

/** A reader of a ledger that grows as the test says. */
function ledger(): { rows: EntryRow[]; reader: StorageReader; fail: { next: boolean } } {
  const rows: EntryRow[] = [];
  const fail = { next: false };
  const reader = {
    entries: (from: number, to: number) => {
      if (fail.next) {
        fail.next = false;
        return Promise.reject(new Error("the connection is gone"));
      }
      return Promise.resolve(rows.slice(from, to));
    },
  };
  return { rows, reader: reader as unknown as StorageReader, fail };
}

it("a commit that was already delivered by looking is not delivered again, and what comes after is", async () => {
  const { rows, reader } = ledger();
  const tail = createTail(reader, 0, LOG);
  const got: number[] = [];
  tail.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)));
  rows.push(entryRow(0), entryRow(1));
  tail.reached(2);
  await tail.settled();
  // The own commit's word comes late, when nothing is missing.
  tail.committed([rows[1] as EntryRow]);
  await tail.settled();
  rows.push(entryRow(2));
  tail.committed([rows[2] as EntryRow]);
  rows.push(entryRow(3), entryRow(4));
  tail.reached(5);
  await tail.settled();
  assert.deepEqual(got, [0, 1, 2, 3, 4]);
});

it("an own commit behind others' waits for theirs", async () => {
  const { rows, reader } = ledger();
  const tail = createTail(reader, 0, LOG);
  const got: number[] = [];
  tail.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)));
  rows.push(entryRow(0), entryRow(1), entryRow(2));
  tail.committed([rows[2] as EntryRow]);
  tail.reached(1);
  await tail.settled();
  assert.deepEqual(got, [0, 1, 2]);
});

it("a read that fails loses nothing: the next word reads from the same place", async () => {
  const { rows, reader, fail } = ledger();
  const tail = createTail(reader, 0, LOG);
  const got: number[] = [];
  tail.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)));
  rows.push(entryRow(0), entryRow(1));
  fail.next = true;
  tail.reached(2);
  await tail.settled();
  assert.deepEqual(got, []);
  tail.reached(2);
  await tail.settled();
  assert.deepEqual(got, [0, 1]);
});

it("an entry that the store lacks is waited for, not passed over", async () => {
  const { rows, reader } = ledger();
  const tail = createTail(reader, 0, LOG);
  const got: number[] = [];
  tail.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)));
  rows.push(entryRow(0), entryRow(2));
  tail.reached(3);
  await tail.settled();
  assert.deepEqual([got, tail.delivered()], [[], 0]);
  rows.splice(1, 0, entryRow(1));
  tail.reached(3);
  await tail.settled();
  assert.deepEqual(got, [0, 1, 2]);
});
