/** Opens a ledger without policies and without permit keys. */
import { randomUUID } from "node:crypto";
import type { Vault } from "../../src/contract/core-host.ts";
import type { Storage } from "../../src/contract/storage.ts";
import type { LedgerTransaction, RecordableEntry } from "../../src/contract/ledger.ts";
import { formatVkey, type NoteSigner } from "../../src/domain/checkpoint.ts";
import { equalBytes } from "../../src/domain/hash.ts";
import { emptyPolicySet } from "../../src/domain/policy/compile/compile.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import type { JobTransaction } from "../../src/ledger/commit/job-transaction.ts";
import { createLedgerClock, type LedgerClock } from "../../src/ledger/commit/clock.ts";
import { openLedger, type LedgerOptions, type OpenLedger } from "../../src/ledger/index.ts";
import { HeadReader } from "../../src/ledger/head-reader.ts";
import { createLogKeyBook, type LogKeyBook } from "../../src/ledger/sign/log-key-book.ts";
import { createLogger } from "../../src/serve/log.ts";
import { newSigner } from "./keys.ts";
import { seals } from "./seals.ts";

export const vault: Vault = { mac: () => new Uint8Array(32), verify: verifyEd25519 };

/** The log key of these ledgers. */
export const signer = newSigner("ledger");

/** Returns the key book of a log with one key, whose private key this process has. */
export const logKeysOf = (origin: string, { publicKey, sign }: Omit<NoteSigner, "name"> = signer): LogKeyBook =>
  createLogKeyBook({
    first: formatVkey(origin, publicKey),
    signer: (name, wanted) => (equalBytes(wanted, publicKey) ? { name, publicKey, sign } : null),
    verify: verifyEd25519,
    clock: Date.now,
  });

export const newClock = (): LedgerClock => createLedgerClock(Date.now, { warn() {} });

/** Opens the ledger of an open store, as a process without policies does. */
export async function openLedgerOn(storage: Storage, options: Partial<LedgerOptions> = {}): Promise<OpenLedger> {
  return openLedger({
    storage,
    heads: await HeadReader.open(storage, options.seals ?? seals),
    instance: randomUUID(),
    verify: verifyEd25519,
    logKeys: logKeysOf(options.origin ?? "ledger.example"),
    log: createLogger("silent"),
    clock: newClock(),
    origin: "ledger.example",
    maxBatch: 256,
    verifyAtStart: 1_000,
    keptCheckpoint: null,
    acceptRollback: false,
    policies: () => Promise.resolve({ digest: null, compiled: emptyPolicySet(), source: null }),
    verifyPast: () => Promise.resolve(null),
    confirm: (_tx, credential) => Promise.resolve(credential),
    outbox: null,
    seals,
    agentFacts: () => Promise.resolve({ attributes: { agent_groups: [], agent_metadata: {} } }),
    ...options,
  });
}

export const entry = (i: number): RecordableEntry =>
  ({
    type: "agent",
    v: 1,
    at: "2026-01-01T00:00:00.000Z",
    change: "updated",
    agent: { i },
    by: null,
  }) as never;

/** Registers a write that no job awaits, as the recorders do. */
export function expectChange(tx: LedgerTransaction, write: Promise<boolean>): void {
  (tx as JobTransaction).expectChange(write, "the action a-1");
}
