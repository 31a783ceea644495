/** Remembered rows that later decisions count (src/ledger/commit/written-rows.ts). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ActionRow, EntryRow, PastActionRow } from "../../src/contract/storage.ts";
import { utf8 } from "../../src/domain/hash.ts";
import { WrittenRows } from "../../src/ledger/commit/written-rows.ts";

const HOUR = 3_600_000;
const START = 1_800_000_000_000;
/** Size of the ledger before each batch. */
const SIZE = 10;
const LIMIT = { policy: "p", limit_name: "l", subject: "bot" };

/** Returns the remembered rows of actions with one use each, one a second, of an amount of 2. */
function remembered(count: number): WrittenRows {
  const all = new WrittenRows({ error() {} });
  for (let i = 0; i < count; i++) {
    const at = START + i * 1000;
    const use = { ...LIMIT, action_id: `a${i}`, at, amount: 2, until: at + HOUR };
    all.remember(actionRow(`a${i}`), { uses: [use], places: [] }, 0, true);
  }
  return all;
}

const actionRow = (id: string): ActionRow =>
  ({
    id,
    submitted_by: "key",
    status: "allowed",
    updated_at: START,
    request: "{}",
    rejection_until: null,
  }) as ActionRow;
/** No action has changed, so that no difference is explained. */
const reader = {
  actionsById: (ids: readonly string[]) => Promise.resolve(ids.map(actionRow)),
  entriesOfAction: () => Promise.resolve([]),
  verifyPast: () => Promise.resolve(null),
};

test("a read of a limit lacks one of several thousand uses in its window", async () => {
  const batch = remembered(3000).batch(reader, START + HOUR - 1, SIZE);
  const span = { ...LIMIT, since: START };
  assert.deepEqual(await batch.checkLimit(span, { count: 3000, sum: 6000 }), { count: 3000, sum: 6000 });
  for (const used of [
    { count: 2999, sum: 5998 },
    { count: 3000, sum: 5999 },
    { count: 1024, sum: 2048 },
  ])
    await assert.rejects(batch.checkLimit(span, used), { code: "STORE_ALTERED" });
});

test("uses that have left the window of their limit are not missed", async () => {
  const all = remembered(3000);
  const later = START + HOUR + 1000 * 1000;
  // A use counts until its end, exclusively.
  const rows = 3000 - 1001;
  const span = { ...LIMIT, since: later - HOUR };
  assert.equal((await all.batch(reader, later, SIZE).checkLimit(span, { count: rows, sum: 2 * rows })).count, rows);
  await assert.rejects(all.batch(reader, later, SIZE).checkLimit(span, { count: rows - 1, sum: 2 * rows }), {
    code: "STORE_ALTERED",
  });
});

test("the rows of the oldest actions are evicted first, also of those from before the start", async () => {
  const all = new WrittenRows({ error() {} });
  const count = 50_100;
  for (let i = count; i > 0; i--) {
    const use = { ...LIMIT, subject: `s${i}`, action_id: `a${i}`, at: START + i, amount: 1, until: START + HOUR };
    all.remember(actionRow(`a${i}`), { uses: [use], places: [] }, 0, true);
  }
  const batch = all.batch(reader, START + HOUR / 2, SIZE);
  const read = (i: number): Promise<unknown> =>
    batch.checkLimit({ ...LIMIT, subject: `s${i}`, since: START }, { count: 0, sum: 0 });
  await assert.rejects(read(count), { code: "STORE_ALTERED" });
  await read(1);
});

test("a history contains a result that differs from the written one", async () => {
  const all = new WrittenRows({ error() {} });
  const place = { policy: "p", basis: "b", subject: "bot", action_id: "a", at: START, until: START + HOUR };
  const row = { ...actionRow("a"), erased_at: null, result: '{"meta":{"id":"c-1"}}' };
  all.remember(row, { uses: [], places: [place] }, 0, true);
  const batch = all.batch({ ...reader, actionsById: () => Promise.resolve([row]) }, START + 1, SIZE);
  const span = { policy: "p", basis: "b", subject: "bot", since: START, limit: 5 };
  const read = (result: string | null): Promise<unknown> =>
    batch.checkHistory(span, [{ ...row, at: START, result } as unknown as PastActionRow]);
  await read(row.result);
  for (const result of ['{"meta":{"id":"c-2"}}', null]) await assert.rejects(read(result), { code: "STORE_ALTERED" });
});

test("a history without the result that another process erased", async () => {
  const all = new WrittenRows({ error() {} });
  const place = { policy: "p", basis: "b", subject: "bot", action_id: "a", at: START, until: START + HOUR };
  const row = { ...actionRow("a"), erased_at: null, result: '{"meta":{"id":"c-1"}}' };
  all.remember(row, { uses: [], places: [place] }, 1, true);
  const span = { policy: "p", basis: "b", subject: "bot", since: START, limit: 5 };
  const erased = { ...row, result: null };
  const read = (seq: number): Promise<unknown> => {
    const entry = { seq, bytes: utf8('{"type":"erasure","action_id":"a"}') } as EntryRow;
    const changed = {
      actionsById: () => Promise.resolve([erased]),
      entriesOfAction: () => Promise.resolve([entry]),
      verifyPast: () => Promise.resolve({ uses: [], places: [place] }),
    };
    return all
      .batch(changed, START + 1, SIZE)
      .checkHistory(span, [{ ...erased, at: START } as unknown as PastActionRow]);
  };
  // The newest entry is older than the remembered row, so it does not explain the difference.
  await assert.rejects(read(0), { code: "STORE_ALTERED" });
  await read(1);
});

test("a history shows an action that no entry places there", async () => {
  const all = new WrittenRows({ error() {} });
  const span = { policy: "p", basis: "b", subject: "bot", since: START, limit: 5 };
  const forged = { ...actionRow("a"), erased_at: null, at: START } as unknown as PastActionRow;
  await assert.rejects(all.batch(reader, START + 1, SIZE).checkHistory(span, [forged]), { code: "STORE_ALTERED" });
  // A remembered place in another history does not suffice.
  const place = { policy: "p", basis: "b", subject: "other", action_id: "a", at: START, until: START + HOUR };
  all.remember({ ...actionRow("a"), erased_at: null }, { uses: [], places: [place] }, 0, true);
  await assert.rejects(all.batch(reader, START + 1, SIZE).checkHistory(span, [forged]), { code: "STORE_ALTERED" });
});
