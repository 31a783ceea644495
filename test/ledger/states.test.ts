/** States that plugins fold from entries: in a batch, in another process, and after a restart. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RecordableEntry } from "../../src/contract/ledger.ts";
import type { Fold } from "../../src/domain/fold.ts";
import { Directory } from "../../src/identity/directory.ts";
import { States } from "../../src/ledger/states.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { openLedgerOn } from "../support/ledger.ts";

const notes: Fold<readonly string[]> = {
  name: "notes",
  initial: [],
  on: {
    "notes:change"(state, entry) {
      const { text } = entry["data" as never] as { text: string };
      if (state.includes(text)) throw new RangeError(`the note "${text}" is written twice`);
      return [...state, text];
    },
  },
};

const note = (text: string): RecordableEntry => ({
  type: "notes:change",
  v: 1,
  at: "2026-01-01T00:00:00.000Z",
  action_id: null,
  agent_id: null,
  data: { text },
  by: null,
});

async function opened() {
  const storage = memoryStorage();
  await storage.open();
  const directory = new Directory({ folds: [notes], entryTypes: ["notes:change"] });
  const ledger = await openLedgerOn(storage, {
    clock: {
      now: () => Date.parse("2026-01-01T00:00:00.000Z"),
      timeOfDay: () => Date.parse("2026-01-01T00:00:00.000Z"),
      ahead: () => 0,
      observeEntryTime: () => undefined,
    },
    states: () => directory.current(),
    follow: (tx, head) => directory.follow(tx, head),
    entryFault: () => null,
  });
  return { storage, directory, ledger };
}

test("a job reads the state that earlier jobs of the batch recorded, and a failed job leaves none", async () => {
  const { ledger, directory, storage } = await opened();
  const record = (text: string) =>
    ledger.transact(async (tx) => {
      tx.record(note(text));
      return tx.state(notes);
    });
  const [first, second, twice] = await Promise.allSettled([record("a"), record("b"), record("a")]);
  assert.deepEqual(first, { status: "fulfilled", value: ["a"] });
  assert.deepEqual(second, { status: "fulfilled", value: ["a", "b"] });
  assert.match(String(twice.status === "rejected" && twice.reason), /written twice/);
  await directory.follow(storage, await storage.head());
  assert.deepEqual(directory.current().state(notes), ["a", "b"]);
  await ledger.close();
});

test("an entry that a fold reads raises the epoch, and a process that starts later applies it", async () => {
  const { ledger, storage } = await opened();
  await ledger.transact(async (tx) => tx.record(note("a")));
  await ledger.transact(async (tx) => tx.record(note("b")));
  assert.equal((await storage.head()).epoch, 2);
  const other = new Directory({ folds: [notes], entryTypes: ["notes:change"] });
  await other.follow(storage, await storage.head());
  assert.deepEqual(other.current().state(notes), ["a", "b"]);
  await ledger.close();
});

test("an entry that contradicts earlier entries stops a process that starts", async () => {
  const { ledger, storage } = await opened();
  await ledger.transact(async (tx) => tx.record(note("a")));
  const strict: Fold<number> = {
    name: "strict",
    initial: 0,
    on: {
      "notes:change"() {
        throw new RangeError("no notes are allowed");
      },
    },
  };
  await assert.rejects(
    new Directory({ folds: [strict], entryTypes: ["notes:change"] }).follow(storage, await storage.head()),
    /entry 0 of the ledger is not valid: no notes are allowed/,
  );
  await ledger.close();
});

test("a process that does not read a followed entry does not start, unless the operator ignores its type", async () => {
  const { ledger, storage } = await opened();
  await ledger.transact(async (tx) => tx.record(note("a")));
  // A fold of another plugin reads the type, but the plugin that declares it is not loaded.
  for (const folds of [[], [notes]])
    await assert.rejects(
      new Directory({ folds, entryTypes: [] }).follow(storage, await storage.head()),
      /entry 0 has the type "notes:change", on which decisions depend, and no loaded plugin reads it/,
    );
  await new Directory({ folds: [], entryTypes: [] }, ["notes:change"]).follow(storage, await storage.head());
  await ledger.close();
});

test("a state that no plugin declares cannot be read, and no two folds have one name", () => {
  assert.throws(() => States.initial([]).state(notes), /no loaded plugin declares the state "notes"/);
  assert.throws(() => States.initial([notes, notes]), /two folds are named "notes"/);
});
