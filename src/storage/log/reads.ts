/** The read methods of the storage contract, over tables in memory. */
import type {
  AgentFilter,
  EntryRow,
  IdempotencyLookup,
  IdempotencyCursor,
  StorageReader,
} from "../../contract/storage.ts";
import { createActionReads, createDecisionReads, createPendingReads } from "./action-reads.ts";
import { createDeliveryReads } from "./deliveries.ts";
import { createPastActionReads } from "./past-actions.ts";
import { createDocumentReads } from "./document-table.ts";
import { readLedgerSize, SINGLE_ROW_KEY, type StorageMethods, type Tables } from "./row-types.ts";
import { compositeKey, selectRows } from "./tables.ts";

export function createReads(
  t: Tables,
): StorageMethods & { [Name in keyof StorageReader]: (...args: never[]) => unknown } {
  return {
    ...createLedgerReads(t),
    ...createActionReads(t),
    ...createDecisionReads(t),
    ...createPendingReads(t),
    ...createIdempotencyReads(t),
    ...createIdentityReads(t),
    ...createPolicyReads(t),
    ...createDeliveryReads(t),
    ...createPastActionReads(t),
    ...createDocumentReads(t),
    meta: (name: string) => t.meta.get(name)?.value,
  };
}

function createLedgerReads(t: Tables) {
  const entries = (from: number, to: number): EntryRow[] =>
    range(from, Math.min(to, readLedgerSize(t)), (seq) => t.entries.get(compositeKey(seq)));
  return {
    head: () => t.head.get(SINGLE_ROW_KEY),
    checkpoint: () => t.checkpoint.get(SINGLE_ROW_KEY),
    entries,
    entryByHash: (hash: Uint8Array) => t.entriesByHash.get(compositeKey(...hash)),
    entriesOfAction: (id: string) =>
      selectRows(
        t.entries,
        (row) => row.action_id === id,
        (a, b) => a.seq - b.seq,
      ),
    followedEntries: (from: number, limit: number) =>
      selectRows(
        t.entries,
        (row) => row.followed && row.seq >= from,
        (a, b) => a.seq - b.seq,
      ).slice(0, limit),
    leafHashes: (from: number, to: number) => entries(from, to).map((row) => row.leaf_hash),
    tile: (level: number, index: number) => t.tiles.get(compositeKey(level, index)),
    tileRoots: (level: number, from: number, to: number) =>
      range(from, to, (index) => t.tiles.get(compositeKey(level, index))).map((row) => row.root),
  };
}

/** Returns the rows with `from <= n < to` that exist, ascending. */
function range<Row>(from: number, to: number, get: (n: number) => Row | undefined): Row[] {
  const rows: Row[] = [];
  for (let n = from; n < to; n++) {
    const row = get(n);
    if (row !== undefined) rows.push(row);
  }
  return rows;
}

function createIdempotencyReads(t: Tables) {
  return {
    idempotency: (key: string, route: string, idempotencyKey: string) =>
      t.idempotency.get(compositeKey(key, route, idempotencyKey)),
    idempotencies: (names: readonly IdempotencyLookup[]) =>
      names.flatMap(
        ({ key_id, route, idempotency_key }) => t.idempotency.get(compositeKey(key_id, route, idempotency_key)) ?? [],
      ),
    idempotencyBefore: (before: number, after: IdempotencyCursor, limit: number) =>
      selectRows(t.idempotency, (row) => row.created_at < before && byAge(row, after) > 0, byAge).slice(0, limit),
  };
}

/** Compares idempotency keys by age, oldest first. */
function byAge(a: IdempotencyCursor, b: IdempotencyCursor): number {
  for (const member of ["created_at", "key_id", "route", "idempotency_key"] as const)
    if (a[member] !== b[member]) return a[member] < b[member] ? -1 : 1;
  return 0;
}

/** Reads of keys and agents. */
function createIdentityReads(t: Tables) {
  return {
    keyByHash: (hash: string) => [...t.keys.values()].find((row) => row.hash === hash),
    key: (id: string) => t.keys.get(id),
    keys: () =>
      selectRows(
        t.keys,
        () => true,
        (a, b) => b.created_at - a.created_at || (a.id < b.id ? 1 : -1),
      ),
    agent: (id: string) => t.agents.get(id),
    agents: ({ suspended, before_seq, offset = 0, limit }: AgentFilter) =>
      selectRows(
        t.agents,
        (row) =>
          (suspended === undefined || suspended === (row.suspended_at !== null)) &&
          (before_seq === undefined || row.registered_seq < before_seq),
        (a, b) => b.registered_seq - a.registered_seq,
      ).slice(offset, offset + limit),
  };
}

function createPolicyReads(t: Tables) {
  return {
    policy: (id: string) => t.policies.get(id),
    policyByName: (name: string) => [...t.policies.values()].find((row) => row.name === name),
    policies: () =>
      selectRows(
        t.policies,
        () => true,
        (a, b) => (a.name < b.name ? -1 : 1),
      ),
    policyVersion: (id: string, version: number) => t.policyVersions.get(compositeKey(id, version)),
    policyVersions: (id: string) =>
      selectRows(
        t.policyVersions,
        (row) => row.policy_id === id,
        (a, b) => b.version - a.version,
      ),
    policySet: (digest: string) => t.policySets.get(digest),
  };
}
