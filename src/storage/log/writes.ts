/** The write methods of the storage contract, over tables in memory. */
import type {
  ActionRow,
  AgentRow,
  ApprovalRow,
  EntryRow,
  IdempotencyRow,
  KeyRow,
  LedgerHead,
  PolicyRow,
  PolicySetRow,
  PolicyVersionRow,
  StorageTransaction,
  TileRow,
} from "../../contract/storage.ts";
import type { ErasablePart } from "../../domain/erasure.ts";
import { createDeliveryWrites } from "./deliveries.ts";
import { createPastActionWrites } from "./past-actions.ts";
import { createDocumentWrites } from "./document-table.ts";
import { SINGLE_ROW_KEY, type StorageMethods, type Tables } from "./row-types.ts";
import { copyRow, compositeKey, omitUndefined, type Table } from "./tables.ts";

export function createWrites(t: Tables): StorageMethods {
  return {
    ...createLedgerWrites(t),
    ...createActionWrites(t),
    ...createIdempotencyWrites(t),
    ...createIdentityWrites(t),
    ...createPolicyWrites(t),
    ...createDeliveryWrites(t),
    ...createPastActionWrites(t),
    ...createDocumentWrites(t),
    putMeta(name: string, value: string) {
      t.meta.set(name, copyRow({ value }));
    },
  };
}

function insert<Row extends object>(table: Table<Row>, key: string, row: Row, same?: (other: Row) => boolean): void {
  if (table.get(key) !== undefined || (same !== undefined && [...table.values()].some(same)))
    throw new Error(`a row ${key} already exists`);
  table.set(key, copyRow(row));
}

function assertExists(row: unknown, rowName: string): void {
  if (row === undefined) throw new Error(`there is no ${rowName}`);
}

function createLedgerWrites(t: Tables) {
  return {
    append(entries: readonly EntryRow[], tiles: readonly TileRow[], head: LedgerHead) {
      const old = t.head.get(SINGLE_ROW_KEY) as LedgerHead;
      if (
        entries.some((entry, i) => entry.seq !== old.size + i) ||
        head.size !== old.size + entries.length ||
        head.epoch < old.epoch
      ) {
        throw new Error(`the entries do not continue the ledger at ${old.size}`);
      }
      if (head.edge.some((hash) => hash.length !== 32))
        throw new Error("a hash of the head's edge does not have 32 bytes");
      for (const entry of entries) {
        insert(t.entries, compositeKey(entry.seq), entry);
        const hash = compositeKey(...entry.leaf_hash);
        if (t.entriesByHash.get(hash) === undefined) t.entriesByHash.set(hash, copyRow(entry));
      }
      for (const tile of tiles) insert(t.tiles, compositeKey(tile.level, tile.index), tile);
      t.head.set(SINGLE_ROW_KEY, copyRow(head));
    },
    putCheckpoint(size: number, note: string) {
      if (size >= (t.checkpoint.get(SINGLE_ROW_KEY)?.size ?? 0))
        t.checkpoint.set(SINGLE_ROW_KEY, copyRow({ size, note }));
    },
  };
}

function createActionWrites(t: Tables) {
  return {
    insertAction(row: ActionRow) {
      insert(t.actionsBySeq, compositeKey(row.decision_seq), { id: row.id });
      insert(t.actions, row.id, row);
    },
    noteAsked(id: string, asked_at: number, waits: string | null) {
      const row = t.actions.get(id);
      if (row !== undefined) t.actions.set(id, copyRow({ ...row, asked_at, waits }));
    },
    updateAction(...[id, guard, change]: Parameters<StorageTransaction["updateAction"]>) {
      const row = t.actions.get(id);
      const holds =
        row !== undefined &&
        row.status === guard.status &&
        (guard.expires_after === undefined || (row.expires_at !== null && row.expires_at > guard.expires_after)) &&
        (guard.expired_by === undefined || (row.expires_at !== null && row.expires_at <= guard.expired_by)) &&
        (guard.approved_after === undefined ||
          (row.approved_until !== null && row.approved_until > guard.approved_after));
      if (holds) t.actions.set(id, copyRow({ ...row, ...omitUndefined(change) }));
      return holds;
    },
    eraseAction(id: string, at: number) {
      const row = t.actions.get(id);
      if (row === undefined || row.erased_at !== null || row.status === "pending_approval") return false;
      const emptied = { request: "", request_hash: "", salt: "" };
      const erased = {
        ...emptied,
        past: null,
        meta: null,
        questions: null,
        effective: null,
        effective_hash: null,
        result: null,
        erased_at: at,
      };
      t.actions.set(id, copyRow({ ...row, ...erased }));
      return true;
    },
    eraseActionPart(id: string, part: ErasablePart) {
      const row = t.actions.get(id);
      const isKept = row !== undefined && row.erased_at === null && row[part] !== null;
      if (!isKept || row.status === "pending_approval") return false;
      t.actions.set(id, copyRow({ ...row, [part]: null }));
      return true;
    },
    insertApproval(row: ApprovalRow) {
      assertExists(t.actions.get(row.action_id), `action ${row.action_id}`);
      const key = compositeKey(row.action_id, row.principal);
      if (t.approvals.get(key) !== undefined) return false;
      t.approvals.set(key, copyRow(row));
      return true;
    },
    deleteApprovals(actionId: string) {
      const votes = [...t.approvals.values()].filter(({ action_id }) => action_id === actionId);
      for (const { principal } of votes) t.approvals.delete(compositeKey(actionId, principal));
    },
  };
}

function createIdempotencyWrites(t: Tables) {
  return {
    insertIdempotency(row: IdempotencyRow) {
      insert(t.idempotency, compositeKey(row.key_id, row.route, row.idempotency_key), row);
    },
    deleteIdempotency(keyId: string, route: string, idempotencyKey: string) {
      const key = compositeKey(keyId, route, idempotencyKey);
      const exists = t.idempotency.get(key) !== undefined;
      if (exists) t.idempotency.delete(key);
      return exists;
    },
  };
}

/** Writes of keys and agents. */
function createIdentityWrites(t: Tables) {
  return {
    insertKey(row: KeyRow) {
      insert(t.keys, row.id, row, (other) => other.hash === row.hash);
    },
    revokeKey(id: string, at: number) {
      const row = t.keys.get(id);
      if (row === undefined || row.revoked_at !== null) return false;
      t.keys.set(id, copyRow({ ...row, revoked_at: at }));
      return true;
    },
    touchKey(id: string, at: number) {
      const row = t.keys.get(id);
      if (row !== undefined && (row.last_used_at ?? -1) < at) t.keys.set(id, copyRow({ ...row, last_used_at: at }));
    },
    insertAgent(row: AgentRow) {
      insert(t.agents, row.id, row, (other) => other.registered_seq === row.registered_seq);
    },
    updateAgent(row: AgentRow) {
      const stored = t.agents.get(row.id);
      if (stored?.version !== row.version - 1) return false;
      const { registered_seq, created_by, created_at } = stored;
      t.agents.set(row.id, copyRow({ ...row, registered_seq, created_by, created_at }));
      return true;
    },
  };
}

function createPolicyWrites(t: Tables) {
  return {
    insertPolicy(row: PolicyRow) {
      insert(t.policies, row.id, row, (other) => other.name === row.name);
    },
    updatePolicy(row: PolicyRow) {
      const stored = t.policies.get(row.id);
      if (stored === undefined) return false;
      t.policies.set(row.id, copyRow({ ...row, name: stored.name, created_at: stored.created_at }));
      return true;
    },
    insertPolicyVersion(row: PolicyVersionRow) {
      assertExists(t.policies.get(row.policy_id), `policy ${row.policy_id}`);
      insert(t.policyVersions, compositeKey(row.policy_id, row.version), row);
    },
    putPolicySet(row: PolicySetRow) {
      if (t.policySets.get(row.digest) === undefined) t.policySets.set(row.digest, copyRow(row));
    },
  };
}
