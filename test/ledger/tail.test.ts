/**
 * The tail while other processes commit too: each entry is delivered once, in order, whichever source reports it first.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { EntryRow, StorageReader } from "../../src/contract/storage.ts";
import { LedgerTail } from "../../src/ledger/tail.ts";
import { createLogger } from "../../src/serve/log.ts";
import { entryRow } from "../../src/testing/suite/rows.ts";
import { entry } from "../support/ledger.ts";

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

it("an entry that polling has delivered is not delivered again, and later ones are", async () => {
  const { rows, reader } = ledger();
  const tail = new LedgerTail(reader, 0, LOG);
  const got: number[] = [];
  tail.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)));
  rows.push(entryRow(0), entryRow(1));
  await tail.reached(2);
  await tail.settled();
  // The notification of the own commit comes late, when nothing is missing.
  tail.committed([rows[1] as EntryRow], []);
  await tail.settled();
  rows.push(entryRow(2));
  tail.committed([rows[2] as EntryRow], []);
  rows.push(entryRow(3), entryRow(4));
  await tail.reached(5);
  await tail.settled();
  assert.deepEqual(got, [0, 1, 2, 3, 4]);
});

it("an own commit after those of other processes waits for them", async () => {
  const { rows, reader } = ledger();
  const tail = new LedgerTail(reader, 0, LOG);
  const got: number[] = [];
  tail.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)));
  rows.push(entryRow(0), entryRow(1), entryRow(2));
  tail.committed([rows[2] as EntryRow], []);
  await tail.reached(1);
  await tail.settled();
  assert.deepEqual(got, [0, 1, 2]);
});

it("a failed read loses nothing: the next notification reads from the same position", async () => {
  const { rows, reader, fail } = ledger();
  const tail = new LedgerTail(reader, 0, LOG);
  const got: number[] = [];
  tail.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)));
  rows.push(entryRow(0), entryRow(1));
  fail.next = true;
  await tail.reached(2);
  await tail.settled();
  assert.deepEqual(got, []);
  await tail.reached(2);
  await tail.settled();
  assert.deepEqual(got, [0, 1]);
});

it("entries of other processes are read only while there is a listener", async () => {
  const { rows, reader } = ledger();
  const reads: [number, number][] = [];
  const times: number[] = [];
  const counting = {
    entries(from: number, to: number) {
      reads.push([from, to]);
      return reader.entries(from, to);
    },
  };
  const tail = new LedgerTail(counting, 0, LOG, ({ seq }) => times.push(seq));
  const sizes: number[] = [];
  const recorded: number[] = [];
  tail.onGrowth((size) => sizes.push(size));
  tail.onRecorded((entries) => recorded.push(...entries.map(({ seq }) => seq)));
  for (let i = 0; i < 600; i++) rows.push(entryRow(i));
  await tail.reached(599);
  tail.committed([rows[599] as EntryRow], [{ seq: 599, body: entry(599) }]);
  await tail.settled();
  assert.deepEqual([reads, times], [[[598, 599]], [598]], "the newest, for its time");
  const got: number[] = [];
  const stop = tail.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)));
  rows.push(entryRow(600), entryRow(601));
  await tail.reached(602);
  await tail.settled();
  stop();
  rows.push(entryRow(602), entryRow(603));
  await tail.reached(604);
  await tail.settled();
  assert.deepEqual([got, recorded, sizes], [[600, 601], [599], [599, 600, 602, 604]]);
  assert.deepEqual(reads.slice(1), [
    [600, 602],
    [603, 604],
  ]);
});

it("an entry that the store lacks is awaited, not skipped", async () => {
  const { rows, reader } = ledger();
  const tail = new LedgerTail(reader, 0, LOG);
  const got: number[] = [];
  tail.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)));
  rows.push(entryRow(0), entryRow(2));
  await tail.reached(3);
  await tail.settled();
  assert.deepEqual([got, tail.delivered()], [[], 0]);
  rows.splice(1, 0, entryRow(1));
  await tail.reached(3);
  await tail.settled();
  assert.deepEqual(got, [0, 1, 2]);
});

it("a head that a request has read meanwhile is reported to those who watch the ledger grow", async () => {
  const { rows, reader } = ledger();
  const tail = new LedgerTail(reader, 0, LOG);
  const sizes: number[] = [];
  const got: number[] = [];
  tail.onGrowth((size) => sizes.push(size));
  rows.push(entryRow(0), entryRow(1));
  tail.subscribe((entries) => got.push(...entries.map(({ seq }) => seq)), 2);
  await tail.reached(2);
  await tail.settled();
  rows.push(entryRow(2));
  await tail.reached(3);
  await tail.settled();
  assert.deepEqual([sizes, got], [[2, 3], [2]]);
});
