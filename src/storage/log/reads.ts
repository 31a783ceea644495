/** The read methods of the storage contract, over tables in memory. */
import type {
  ActionFilter,
  ActionOwner,
  ActionRow,
  AgentFilter,
  AnalyticsQuery,
  ApprovedCursor,
  DecisionFilter,
  EntryRow,
  IdempotencyLookup,
  IdempotencyCursor,
  FollowedType,
  LedgerHead,
  PendingCursor,
  StorageReader,
  StoredVisibility,
} from "../../contract/storage.ts";
import type { ActionStatus } from "../../domain/actions.ts";
import { sameName } from "../../domain/names.ts";
import { canSee } from "../../domain/visibility.ts";
import { countActions } from "./count-actions.ts";
import { deliveryReads } from "./deliveries.ts";
import { documentReads } from "./document-table.ts";
import { SINGLE_ROW_KEY, type Methods, type Tables } from "./row-types.ts";
import { compositeKey, type Table } from "./tables.ts";

/** Compares idempotency keys by age, oldest first. */
function byAge(a: IdempotencyCursor, b: IdempotencyCursor): number {
  for (const member of ["created_at", "key_id", "route", "idempotency_key"] as const)
    if (a[member] !== b[member]) return a[member] < b[member] ? -1 : 1;
  return 0;
}

/** Returns the existing rows with `from <= n < to`, ascending. */
function range<Row>(from: number, to: number, get: (n: number) => Row | undefined): Row[] {
  const rows: Row[] = [];
  for (let n = from; n < to; n++) {
    const row = get(n);
    if (row !== undefined) rows.push(row);
  }
  return rows;
}

export function createReads(t: Tables): Methods & { [Name in keyof StorageReader]: (...args: never[]) => unknown } {
  const size = (): number => (t.head.get(SINGLE_ROW_KEY) as LedgerHead).size;
  const entries = (from: number, to: number): EntryRow[] =>
    range(from, Math.min(to, size()), (seq) => t.entries.get(compositeKey(seq)));
  const all = <Row>(table: Table<Row>, test: (row: Row) => boolean, order: (a: Row, b: Row) => number): Row[] =>
    [...table.values()].filter(test).sort(order);
  const pending = (): ActionRow[] =>
    all(
      t.actions,
      (row) => row.status === "pending_approval" && row.expires_at !== null,
      (a, b) => (a.expires_at ?? 0) - (b.expires_at ?? 0) || a.decision_seq - b.decision_seq,
    );
  return {
    head: () => t.head.get(SINGLE_ROW_KEY),
    checkpoint: () => t.checkpoint.get(SINGLE_ROW_KEY),
    entries,
    entryByHash: (hash: Uint8Array) => t.entriesByHash.get(compositeKey(...hash)),
    entriesOfAction: (id: string) =>
      all(
        t.entries,
        (row) => row.action_id === id,
        (a, b) => a.seq - b.seq,
      ),
    entriesOfType: (type: FollowedType, from: number, limit: number) =>
      all(
        t.entries,
        (row) => row.type === type && row.seq >= from,
        (a, b) => a.seq - b.seq,
      ).slice(0, limit),
    leafHashes: (from: number, to: number) => entries(from, to).map((row) => row.leaf_hash),
    tile: (level: number, index: number) => t.tiles.get(compositeKey(level, index)),
    tileRoots: (level: number, from: number, to: number) =>
      range(from, to, (index) => t.tiles.get(compositeKey(level, index))).map((row) => row.root),
    action: (id: string) => t.actions.get(id),
    actionsById: (ids: readonly string[]) =>
      [...new Set(ids)].map((id) => t.actions.get(id)).filter((row) => row !== undefined),
    openAction(submittedBy: string, requestHash: string, now: number) {
      const own = [...t.actions.values()].filter(
        (row) => row.submitted_by === submittedBy && row.request_hash === requestHash,
      );
      const startable = own.filter(({ status }) => status === "allowed" || status === "approved");
      const waiting = own.filter(({ status }) => status === "pending_approval");
      return lastToEnd(startable, now, (row) => row.approved_until) ?? lastToEnd(waiting, now, (row) => row.expires_at);
    },
    rejectedAction: (requestHash: string, now: number) =>
      lastToEnd(
        [...t.actions.values()].filter((row) => row.request_hash === requestHash || row.effective_hash === requestHash),
        now,
        (row) => row.rejection_until,
      ),
    actions: (filter: ActionFilter) =>
      all(
        t.actions,
        (row) => matches(row, filter),
        (a, b) => b.decision_seq - a.decision_seq,
      ).slice(filter.offset ?? 0, (filter.offset ?? 0) + filter.limit),
    decisionSpan(since: number, until: number) {
      const rows = all(
        t.actions,
        (row) => row.created_at >= since && row.created_at < until,
        (a, b) => a.decision_seq - b.decision_seq,
      );
      return rows.length === 0 ? null : { first: rows[0]?.decision_seq, last: rows.at(-1)?.decision_seq };
    },
    decisions: ({ from_seq, before_seq, limit, visibility, since, until }: DecisionFilter) =>
      all(
        t.actions,
        (row) =>
          matches(row, { visibility, since, until, before_seq, limit }) &&
          row.decision_seq >= from_seq &&
          row.decision_seq < size(),
        (a, b) => b.decision_seq - a.decision_seq,
      )
        .slice(0, limit)
        .map(({ decision_seq: seq, id: action_id, created_at, request, past }) => ({
          seq,
          action_id,
          created_at,
          request,
          past,
          bytes: t.entries.get(compositeKey(seq))?.bytes,
        })),
    overdueActions: (now: number, limit: number) =>
      pending()
        .filter((row) => (row.expires_at ?? 0) <= now)
        .slice(0, limit),
    pendingActions: (visibility: StoredVisibility, after: PendingCursor, limit: number) =>
      pending()
        .filter(
          ({ expires_at, decision_seq }) =>
            (expires_at ?? 0) > after.expires_at ||
            (expires_at === after.expires_at && decision_seq > after.decision_seq),
        )
        .filter((row) => canSee(visibility, row))
        .slice(0, limit),
    approvedActions: (after: ApprovedCursor, limit: number) =>
      all(
        t.actions,
        ({ status, approved_until: ends, decision_seq: seq }) =>
          status === "approved" &&
          ends !== null &&
          (ends > after.approved_until || (ends === after.approved_until && seq > after.decision_seq)),
        (a, b) => (a.approved_until ?? 0) - (b.approved_until ?? 0) || a.decision_seq - b.decision_seq,
      ).slice(0, limit),
    openActionsOf: (owner: ActionOwner, now: number, limit: number) =>
      [...t.actions.values()]
        .filter(
          (row) =>
            openUntil(row) > now &&
            ("key_id" in owner ? row.submitted_by === owner.key_id : sameName(row.agent_id, owner.agent_id)),
        )
        .slice(0, limit),
    pendingCount: (visibility: StoredVisibility, now: number) =>
      pending().filter((row) => (row.expires_at ?? 0) > now && canSee(visibility, row)).length,
    approvalRequests(keyId: string, since: number, until: number, most: number) {
      const rows = all(
        t.actions,
        ({ submitted_by, decision, created_at }) =>
          submitted_by === keyId && decision === "require_approval" && created_at >= since && created_at < until,
        (a, b) => b.created_at - a.created_at,
      ).slice(0, most);
      return {
        requests: rows.length,
        hours: new Set(rows.map(({ created_at }) => Math.floor(created_at / 3_600_000))).size,
      };
    },
    oldestPending: (now: number) =>
      pending()
        .filter((row) => (row.expires_at ?? 0) > now)
        .reduce<number | null>((oldest, row) => Math.min(oldest ?? Infinity, row.created_at), null),
    nextExpiry: () => pending()[0]?.expires_at,
    analytics: (query: AnalyticsQuery) => countActions([...t.actions.values()], query),
    approvals: (id: string) =>
      all(
        t.approvals,
        (row) => row.action_id === id,
        (a, b) => a.seq - b.seq,
      ),
    idempotency: (key: string, route: string, idempotencyKey: string) =>
      t.idempotency.get(compositeKey(key, route, idempotencyKey)),
    idempotencies: (names: readonly IdempotencyLookup[]) =>
      names.flatMap(
        ({ key_id, route, idempotency_key }) => t.idempotency.get(compositeKey(key_id, route, idempotency_key)) ?? [],
      ),
    idempotencyBefore: (before: number, after: IdempotencyCursor, limit: number) =>
      all(t.idempotency, (row) => row.created_at < before && byAge(row, after) > 0, byAge).slice(0, limit),
    keyByHash: (hash: string) =>
      all(
        t.keys,
        (row) => row.hash === hash,
        () => 0,
      )[0],
    key: (id: string) => t.keys.get(id),
    keys: () =>
      all(
        t.keys,
        () => true,
        (a, b) => b.created_at - a.created_at || (a.id < b.id ? 1 : -1),
      ),
    agent: (id: string) => t.agents.get(id),
    agents: ({ suspended, before_seq, offset = 0, limit }: AgentFilter) =>
      all(
        t.agents,
        (row) =>
          (suspended === undefined || suspended === (row.suspended_at !== null)) &&
          (before_seq === undefined || row.registered_seq < before_seq),
        (a, b) => b.registered_seq - a.registered_seq,
      ).slice(offset, offset + limit),
    policy: (id: string) => t.policies.get(id),
    policyByName: (name: string) =>
      all(
        t.policies,
        (row) => row.name === name,
        () => 0,
      )[0],
    policies: () =>
      all(
        t.policies,
        () => true,
        (a, b) => (a.name < b.name ? -1 : 1),
      ),
    policyVersion: (id: string, version: number) => t.policyVersions.get(compositeKey(id, version)),
    policyVersions: (id: string) =>
      all(
        t.policyVersions,
        (row) => row.policy_id === id,
        (a, b) => b.version - a.version,
      ),
    policySet: (digest: string) => t.policySets.get(digest),
    ...deliveryReads(t),
    ...documentReads(t),
    meta: (name: string) => t.meta.get(name)?.value,
  };
}

/** 0 if the action is not open. */
function openUntil({ status, expires_at, approved_until }: ActionRow): number {
  if (status === "pending_approval") return expires_at ?? 0;
  return status === "allowed" || status === "approved" ? (approved_until ?? 0) : 0;
}

function lastToEnd(
  rows: readonly ActionRow[],
  now: number,
  endOf: (row: ActionRow) => number | null,
): ActionRow | undefined {
  const ends = (row: ActionRow): number => endOf(row) ?? 0;
  return rows
    .filter((row) => ends(row) > now)
    .toSorted((a, b) => ends(b) - ends(a) || b.decision_seq - a.decision_seq)[0];
}

function matches(row: ActionRow, filter: ActionFilter): boolean {
  const { visibility: seen } = filter;
  return (
    ("all" in seen || ("agent_id" in seen ? row.agent_id === seen.agent_id : row.submitted_by === seen.key_id)) &&
    (filter.status === undefined || statusOf(row, filter.as_of) === filter.status) &&
    (["agent_id", "tool", "operation", "request_hash", "grant_id", "plan_id"] as const).every(
      (name) => filter[name] === undefined || row[name] === filter[name],
    ) &&
    (filter.first_of_plan === undefined || row.plan_position === 1) &&
    (filter.since === undefined || row.created_at >= filter.since) &&
    (filter.until === undefined || row.created_at < filter.until) &&
    (filter.before_seq === undefined || row.decision_seq < filter.before_seq)
  );
}

function statusOf(row: ActionRow, asOf = -Infinity): ActionStatus {
  return row.status === "pending_approval" && (row.expires_at ?? 0) <= asOf ? "expired" : row.status;
}
