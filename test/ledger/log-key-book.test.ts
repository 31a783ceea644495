/** Processes that share a store while the log's key is rotated: none signs with a key that is not the log's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageError, type Storage } from "../../src/contract/storage.ts";
import type { NoteSigner } from "../../src/domain/checkpoint.ts";
import { openCheckpoint, readNote } from "../../src/domain/checkpoint.ts";
import type { RecordableEntry } from "../../src/contract/ledger.ts";
import { equalBytes } from "../../src/domain/hash.ts";
import { signHandover } from "../../src/domain/log-keys.ts";
import type { OpenLedger } from "../../src/ledger/index.ts";
import { createLogKeyBook } from "../../src/ledger/sign/log-key-book.ts";
import { memoryStorage } from "../../src/testing/memory-storage.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { entry, openLedgerOn } from "../support/ledger.ts";
import { ed25519, signerOf } from "../support/signer.ts";

const ORIGIN = "rotation.example/log";
const [FIRST, SECOND, THIEF] = [signerOf(ORIGIN), signerOf(ORIGIN, 64), signerOf(ORIGIN, 128)];

/** A process that has these keys; the list can grow while it runs. */
async function open(storage: Storage, has: NoteSigner[]): Promise<OpenLedger> {
  const logKeys = createLogKeyBook({
    first: FIRST.vkey,
    signer: (_name, wanted) => has.find(({ publicKey }) => equalBytes(publicKey, wanted)) ?? null,
    verify: ed25519,
    clock: Date.now,
  });
  await logKeys.follow(storage, (await storage.head()).epoch);
  return openLedgerOn(storage, { origin: ORIGIN, logKeys });
}

async function shared(): Promise<Storage> {
  const storage = memoryStorage();
  await storage.open();
  return { ...storage, exclusive: false };
}

const add = (ledger: OpenLedger, body: RecordableEntry = entry(0)): Promise<number> =>
  ledger.transact((tx) => Promise.resolve(tx.record(body).seq));

async function change(
  ledger: OpenLedger,
  ends: typeof FIRST,
  follows: typeof FIRST,
  by = ends,
): Promise<RecordableEntry> {
  const { size, root } = await ledger.checkpoint();
  const handover = signHandover(
    { origin: ORIGIN, size, root },
    { ...ends, signer: by },
    { ...follows, signer: follows },
  );
  const at = "2026-01-01T00:00:00.000Z";
  return {
    type: "log_key",
    v: 1,
    at,
    vkey: follows.vkey,
    previous: ends.vkey,
    previous_until: "2999-01-01T00:00:00.000Z",
    handover,
    by: null,
  };
}

const unavailable = (error: unknown): boolean => error instanceof StorageError && error.kind === "unavailable";
const corrupt = (error: unknown): boolean => error instanceof StorageError && error.kind === "corrupt";
const signatures = (note: string): number => readNote(note).signatures.length;

test("other processes use the new log key without a restart; one that has only the old key does not write or sign", async () => {
  const storage = await shared();
  const late = [FIRST];
  const [one, two, three] = [
    await open(storage, [FIRST, SECOND]),
    await open(storage, [FIRST, SECOND]),
    await open(storage, late),
  ];
  await add(three);
  const seq = await add(one, await change(one, FIRST, SECOND));
  // Process two has not been notified, and gets a request first.
  assert.equal((await two.logKeys())[0]?.vkey, SECOND.vkey);
  const { note, size } = await two.checkpoint();
  assert.deepEqual([size, signatures(note)], [seq + 1, 2]);
  for (const { vkey } of [FIRST, SECOND]) assert.equal(openCheckpoint(note, vkey, ed25519).size, size);
  await add(two);
  for (const _ of [1, 2]) {
    await assert.rejects(add(three), unavailable);
    await assert.rejects(three.checkpoint(), unavailable);
  }
  assert.equal(three.halted(), null, "it is not lost");
  assert.equal((await storage.head()).size, seq + 2, "and has written nothing");
  late.push(SECOND);
  await add(three);
  assert.equal(signatures((await three.checkpoint()).note), 2);
  for (const ledger of [one, two, three]) await ledger.close();
  assert.deepEqual(
    (await auditStore(storage, FIRST.vkey)).faults.filter((fault) => /key|checkpoint/.test(fault)),
    [],
  );
});

test("a process that only has the new key signs later heads, and no earlier ones", async () => {
  const storage = await shared();
  const one = await open(storage, [FIRST, SECOND]);
  await add(one);
  const waiting = await open(storage, [SECOND]);
  await assert.rejects(waiting.checkpoint(), unavailable);
  await assert.rejects(add(waiting), unavailable);
  await add(one, await change(one, FIRST, SECOND));
  await add(waiting);
  const { note } = await waiting.checkpoint();
  assert.equal(signatures(note), 1);
  openCheckpoint(note, SECOND.vkey, ed25519);
  for (const ledger of [one, waiting]) await ledger.close();
});

test("an entry that the log's key did not sign is ignored, and no one signs the log that contains it", async () => {
  for (const forge of [
    (ledger: OpenLedger) => change(ledger, FIRST, THIEF, THIEF),
    async (ledger: OpenLedger) => ({ ...(await change(ledger, FIRST, SECOND)), vkey: THIEF.vkey }) as RecordableEntry,
    async (ledger: OpenLedger) => ({ ...(await change(ledger, FIRST, SECOND)), handover: "" }) as RecordableEntry,
    (ledger: OpenLedger) => change(ledger, THIEF, SECOND),
  ]) {
    const storage = await shared();
    const one = await open(storage, [FIRST, SECOND]);
    await add(one);
    const forged = await forge(one);
    // Anyone with write access to the database; here a process without the check.
    const careless = await openLedgerOn(storage, {
      origin: ORIGIN,
      logKeys: {
        ...createLogKeyBook({ first: FIRST.vkey, signer: () => FIRST, verify: ed25519, clock: Date.now }),
        applyEntries: () => undefined,
      },
    });
    const seq = await add(careless, forged);
    await assert.rejects(one.checkpoint(), corrupt);
    await assert.rejects(add(one), corrupt);
    await assert.rejects(open(storage, [FIRST, SECOND, THIEF]), corrupt);
    const { faults } = await auditStore(storage, FIRST.vkey);
    const words = [`entry ${seq} contradicts earlier entries`, `${FIRST.vkey} is not a key of the log`];
    assert.ok(
      faults.some((fault) => words.some((begin) => fault.startsWith(begin))),
      faults.join(),
    );
    await careless.close();
    await one.close();
  }
});
