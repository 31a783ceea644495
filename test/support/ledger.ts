/** A ledger alone, with no keys and no policies beside it. */
import { generateKeyPairSync, sign } from "node:crypto";
import type { Vault } from "../../src/contract/host.ts";
import type { Storage } from "../../src/contract/storage.ts";
import type { EntryBody } from "../../src/domain/entries.ts";
import { emptyPolicySet } from "../../src/domain/policy/compile.ts";
import { verifyEd25519 } from "../../src/identity/vault.ts";
import { createLedgerClock, type LedgerClock } from "../../src/ledger/clock.ts";
import { openLedger, type LedgerOptions, type OpenLedger } from "../../src/ledger/index.ts";
import { createLogger } from "../../src/serve/log.ts";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");

export const vault: Vault = {
  publicKey: new Uint8Array(publicKey.export({ type: "spki", format: "der" }).subarray(12)),
  mac: () => new Uint8Array(32),
  sign: (message) => new Uint8Array(sign(null, message, privateKey)),
  verify: verifyEd25519,
};

export const newClock = (): LedgerClock => createLedgerClock(Date.now, { warn() {} });

/** Opens the ledger of a store that is open, as a process does that has no policies. */
export function openLedgerOn(storage: Storage, options: Partial<LedgerOptions> = {}): Promise<OpenLedger> {
  return openLedger({
    storage,
    vault,
    log: createLogger("silent"),
    clock: newClock(),
    origin: "ledger.example",
    maxBatch: 256,
    verifyAtStart: 1_000,
    keptCheckpoint: null,
    acceptRollback: false,
    policies: () => Promise.resolve({ digest: null, compiled: emptyPolicySet(), source: null }),
    confirm: (_tx, credential) => Promise.resolve(credential),
    outbox: null,
    agentFacts: () => Promise.resolve({}),
    ...options,
  });
}

export const entry = (i: number): EntryBody => ({
  type: "agent",
  v: 1,
  at: "2026-01-01T00:00:00.000Z",
  change: "updated",
  agent: { i },
  by: null,
});
