/**
 * The storage contract without a database, for tests: the same promises, checked by the same suite.
 * The object is the disk: what was committed survives `close` and `open`, and nothing else does.
 */
import {
  StorageError,
  type ActionFilter,
  type ActionRow,
  type AgentChange,
  type AgentFilter,
  type AgentRow,
  type AnalyticsQuery,
  type ApprovalRow,
  type DecisionFilter,
  type DeliveryRow,
  type EntryRow,
  type IdempotencyRow,
  type KeyRow,
  type LedgerHead,
  type LimitUseRow,
  type PolicyRow,
  type PolicySetRow,
  type PolicyVersionRow,
  type Storage,
  type StorageReader,
  type StorageTransaction,
  type TileRow,
} from "../contract/storage.ts";
import { EMPTY_ROOT } from "../domain/merkle.ts";
import { countActions } from "./count-actions.ts";
import { deliveryReads, deliveryWrites } from "./memory-deliveries.ts";
import { withFaults, type Faults } from "./faults.ts";
import { copyOf, keyOf, PendingTable, StoredTable, type Table } from "./memory-tables.ts";

interface Rows {
  head: LedgerHead;
  checkpoint: { size: number; note: string };
  entries: EntryRow;
  entriesByHash: EntryRow;
  tiles: TileRow;
  actions: ActionRow;
  /** By decision_seq, which is unique too. */
  actionsBySeq: { id: string };
  approvals: ApprovalRow;
  idempotency: IdempotencyRow;
  keys: KeyRow;
  agents: AgentRow;
  policies: PolicyRow;
  policyVersions: PolicyVersionRow;
  policySets: PolicySetRow;
  deliveries: DeliveryRow;
  limitUses: LimitUseRow;
  meta: { value: string };
}

type Tables = { [Name in keyof Rows]: Table<Rows[Name]> };
type Disk = { [Name in keyof Rows]: StoredTable<Rows[Name]> };
type Pending = { [Name in keyof Rows]: PendingTable<Rows[Name]> };

const NAMES: readonly (keyof Rows)[] = [
  "head", "checkpoint", "entries", "entriesByHash", "tiles", "actions", "actionsBySeq", "approvals", "idempotency", "keys", "agents", "policies", "policyVersions", "policySets", "deliveries", "limitUses", "meta",
];
const ONLY = "only";

export function memoryStorage(): Storage & { faults: Faults } {
  return withFaults(plainMemoryStorage());
}

function plainMemoryStorage(): Storage {
  const disk = Object.fromEntries(NAMES.map((name) => [name, new StoredTable()])) as unknown as Disk;
  const leases = new Map<string, { holder: string; until: number }>();
  let isOpen = false;
  let readOnly = false;
  let queue: Promise<unknown> = Promise.resolve();

  function enqueue<T>(job: () => Promise<T>): Promise<T> {
    const result = queue.then(job);
    queue = result.catch(() => undefined);
    return result;
  }

  function assertWritable(): void {
    assertOpen();
    if (readOnly) throw new StorageError("readonly", "the memory store was opened to be read only");
  }

  function assertOpen(): void {
    if (!isOpen) throw new StorageError("unavailable", "the memory store is not open");
  }

  async function transact<T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T> {
    assertOpen();
    const pending = Object.fromEntries(NAMES.map((name) => [name, new PendingTable(disk[name] as StoredTable<unknown>)])) as unknown as Pending;
    let over = false;
    let failure: unknown = null;
    // As in a database, a statement that failed loses the transaction, whoever swallows the error.
    const run = async (method: () => unknown): Promise<unknown> => {
      if (over) throw new StorageError("unavailable", "the transaction is over: await everything inside the work of `write`");
      if (failure !== null) throw failure;
      try {
        return copyOf(method());
      } catch (error) {
        failure = error instanceof StorageError ? error : new StorageError(error instanceof TypeError ? "invalid" : "unavailable", error instanceof Error ? error.message : String(error), { cause: error });
        throw failure;
      }
    };
    try {
      const result = await work(asynchronous({ ...readsOf(pending), ...writesOf(pending) }, run) as unknown as StorageTransaction);
      if (failure !== null) throw failure;
      for (const name of NAMES) pending[name].commit();
      return result;
    } finally {
      over = true;
    }
  }

  const reads = asynchronous(readsOf(disk), async (method) => {
    assertOpen();
    return copyOf(method());
  }) as unknown as StorageReader;

  return {
    ...reads,
    name: "memory",
    exclusive: true,
    open: (options = {}) =>
      enqueue(async () => {
        if (options.readOnly === true && disk.head.get(ONLY) === undefined) throw new StorageError("unavailable", "there is no store yet");
        if (!isOpen) readOnly = options.readOnly === true;
        if (disk.head.get(ONLY) === undefined) disk.head.set(ONLY, { size: 0, root: EMPTY_ROOT, edge: [], policy_set: null, epoch: 0 });
        isOpen = true;
      }),
    close: () =>
      enqueue(async () => {
        isOpen = false;
      }),
    ping: () => enqueue(async () => assertWritable()),
    schema: async () => {
      assertOpen();
      return { applied: 1, known: 1 };
    },
    leases: async (now) => {
      assertOpen();
      return [...leases].filter(([, { until }]) => until > now).map(([name, held]) => ({ name, ...held })).sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    lease: (name, holder, now, until) =>
      enqueue(async () => {
        assertWritable();
        const held = leases.get(name);
        if (held !== undefined && held.holder !== holder && held.until > now) return false;
        leases.set(name, { holder, until });
        return true;
      }),
    write: (work) =>
      enqueue(() => {
        assertWritable();
        return transact(work);
      }),
  };
}

type Methods = Record<string, (...args: never[]) => unknown>;

function asynchronous(methods: Methods, run: (method: () => unknown) => Promise<unknown>): Record<string, (...args: never[]) => Promise<unknown>> {
  return Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, (...args: never[]) => run(() => method(...args) ?? null)]));
}

/** Arrays of rows `from <= n < to` that are there, ascending. */
function range<Row>(from: number, to: number, get: (n: number) => Row | undefined): Row[] {
  const rows: Row[] = [];
  for (let n = from; n < to; n++) {
    const row = get(n);
    if (row !== undefined) rows.push(row);
  }
  return rows;
}

function readsOf(t: Tables): Methods & { [Name in keyof StorageReader]: (...args: never[]) => unknown } {
  const size = (): number => (t.head.get(ONLY) as LedgerHead).size;
  const entries = (from: number, to: number): EntryRow[] => range(from, Math.min(to, size()), (seq) => t.entries.get(keyOf(seq)));
  const all = <Row>(table: Table<Row>, test: (row: Row) => boolean, order: (a: Row, b: Row) => number): Row[] => [...table.values()].filter(test).sort(order);
  const pending = (): ActionRow[] =>
    all(t.actions, (row) => row.status === "pending_approval" && row.expires_at !== null, (a, b) => (a.expires_at ?? 0) - (b.expires_at ?? 0) || a.decision_seq - b.decision_seq);
  return {
    head: () => t.head.get(ONLY),
    checkpoint: () => t.checkpoint.get(ONLY),
    entries,
    entryByHash: (hash: Uint8Array) => t.entriesByHash.get(keyOf(...hash)),
    entriesOfAction: (id: string) => all(t.entries, (row) => row.action_id === id, (a, b) => a.seq - b.seq),
    leafHashes: (from: number, to: number) => entries(from, to).map((row) => row.leaf_hash),
    tile: (level: number, index: number) => t.tiles.get(keyOf(level, index)),
    tileRoots: (level: number, from: number, to: number) => range(from, to, (index) => t.tiles.get(keyOf(level, index))).map((row) => row.root),
    action: (id: string) => t.actions.get(id),
    actions: (filter: ActionFilter) =>
      all(t.actions, (row) => matches(row, filter), (a, b) => b.decision_seq - a.decision_seq).slice(filter.offset ?? 0, (filter.offset ?? 0) + filter.limit),
    decisionSpan(since: number, until: number) {
      const found = all(t.actions, (row) => row.created_at >= since && row.created_at < until, (a, b) => a.decision_seq - b.decision_seq);
      return found.length === 0 ? null : { first: found[0]?.decision_seq, last: found.at(-1)?.decision_seq };
    },
    decisions: ({ from_seq, before_seq, limit, visibility, since, until }: DecisionFilter) =>
      all(t.actions, (row) => matches(row, { visibility, since, until, before_seq, limit }) && row.decision_seq >= from_seq && row.decision_seq < size(), (a, b) => b.decision_seq - a.decision_seq)
        .slice(0, limit)
        .map(({ decision_seq: seq, id: action_id, created_at, request }) => ({ seq, action_id, created_at, request, bytes: t.entries.get(keyOf(seq))?.bytes })),
    overdueActions: (now: number, limit: number) => pending().filter((row) => (row.expires_at ?? 0) <= now).slice(0, limit),
    nextExpiry: () => pending()[0]?.expires_at,
    analytics: (query: AnalyticsQuery) => countActions([...t.actions.values()], query),
    approvals: (id: string) => all(t.approvals, (row) => row.action_id === id, (a, b) => a.seq - b.seq),
    idempotency: (key: string, route: string, idempotencyKey: string) => t.idempotency.get(keyOf(key, route, idempotencyKey)),
    keyByHash: (hash: string) => all(t.keys, (row) => row.hash === hash, () => 0)[0],
    key: (id: string) => t.keys.get(id),
    keys: () => all(t.keys, () => true, (a, b) => b.created_at - a.created_at || (a.id < b.id ? 1 : -1)),
    agent: (id: string) => t.agents.get(id),
    agents: ({ suspended, before_seq, offset = 0, limit }: AgentFilter) =>
      all(
        t.agents,
        (row) => (suspended === undefined || suspended === (row.suspended_at !== null)) && (before_seq === undefined || row.registered_seq < before_seq),
        (a, b) => b.registered_seq - a.registered_seq,
      ).slice(offset, offset + limit),
    policy: (id: string) => t.policies.get(id),
    policyByName: (name: string) => all(t.policies, (row) => row.name === name, () => 0)[0],
    policies: () => all(t.policies, () => true, (a, b) => (a.name < b.name ? -1 : 1)),
    policyVersion: (id: string, version: number) => t.policyVersions.get(keyOf(id, version)),
    policyVersions: (id: string) => all(t.policyVersions, (row) => row.policy_id === id, (a, b) => b.version - a.version),
    policySet: (digest: string) => t.policySets.get(digest),
    ...deliveryReads(t),
    meta: (name: string) => t.meta.get(name)?.value,
  };
}

function matches(row: ActionRow, filter: ActionFilter): boolean {
  const { visibility: seen } = filter;
  return (
    ("all" in seen || ("agent_id" in seen ? row.agent_id === seen.agent_id : row.submitted_by === seen.key_id)) &&
    (["status", "agent_id", "tool", "operation"] as const).every((name) => filter[name] === undefined || row[name] === filter[name]) &&
    (filter.since === undefined || row.created_at >= filter.since) &&
    (filter.until === undefined || row.created_at < filter.until) &&
    (filter.before_seq === undefined || row.decision_seq < filter.before_seq)
  );
}

/** A member that is undefined changes nothing. */
function given<T extends object>(change: T): Partial<T> {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function writesOf(t: Tables): Methods {
  function insert<Row extends object>(table: Table<Row>, key: string, row: Row, same?: (other: Row) => boolean): void {
    if (table.get(key) !== undefined || (same !== undefined && [...table.values()].some(same))) throw new Error(`a row ${key} is there already`);
    table.set(key, copyOf(row));
  }
  function mustExist(found: unknown, what: string): void {
    if (found === undefined) throw new Error(`there is no ${what}`);
  }
  return {
    append(entries: readonly EntryRow[], tiles: readonly TileRow[], head: LedgerHead) {
      const old = t.head.get(ONLY) as LedgerHead;
      if (entries.some((entry, i) => entry.seq !== old.size + i) || head.size !== old.size + entries.length || head.epoch < old.epoch) {
        throw new Error(`the entries do not continue the ledger at ${old.size}`);
      }
      if (head.edge.some((hash) => hash.length !== 32)) throw new Error("a hash of the head's edge has not 32 bytes");
      for (const entry of entries) {
        insert(t.entries, keyOf(entry.seq), entry);
        const hash = keyOf(...entry.leaf_hash);
        if (t.entriesByHash.get(hash) === undefined) t.entriesByHash.set(hash, copyOf(entry));
      }
      for (const tile of tiles) insert(t.tiles, keyOf(tile.level, tile.index), tile);
      t.head.set(ONLY, copyOf(head));
    },
    putCheckpoint(size: number, note: string) {
      if (size >= (t.checkpoint.get(ONLY)?.size ?? 0)) t.checkpoint.set(ONLY, copyOf({ size, note }));
    },
    insertAction(row: ActionRow) {
      insert(t.actionsBySeq, keyOf(row.decision_seq), { id: row.id });
      insert(t.actions, row.id, row);
    },
    updateAction(...[id, guard, change]: Parameters<StorageTransaction["updateAction"]>) {
      const row = t.actions.get(id);
      const holds =
        row !== undefined &&
        row.status === guard.status &&
        (guard.expires_after === undefined || (row.expires_at !== null && row.expires_at > guard.expires_after)) &&
        (guard.expired_by === undefined || (row.expires_at !== null && row.expires_at <= guard.expired_by)) &&
        (guard.permit_after === undefined || (row.permit_expires_at !== null && row.permit_expires_at > guard.permit_after));
      if (holds) t.actions.set(id, copyOf({ ...row, ...given(change) }));
      return holds;
    },
    insertApproval(row: ApprovalRow) {
      mustExist(t.actions.get(row.action_id), `action ${row.action_id}`);
      const key = keyOf(row.action_id, row.principal);
      if (t.approvals.get(key) !== undefined) return false;
      t.approvals.set(key, copyOf(row));
      return true;
    },
    insertIdempotency(row: IdempotencyRow) {
      insert(t.idempotency, keyOf(row.key_id, row.route, row.idempotency_key), row);
    },
    insertKey(row: KeyRow) {
      insert(t.keys, row.id, row, (other) => other.hash === row.hash);
    },
    revokeKey(id: string, at: number) {
      const row = t.keys.get(id);
      if (row === undefined || row.revoked_at !== null) return false;
      t.keys.set(id, copyOf({ ...row, revoked_at: at }));
      return true;
    },
    touchKey(id: string, at: number) {
      const row = t.keys.get(id);
      if (row !== undefined && (row.last_used_at ?? -1) < at) t.keys.set(id, copyOf({ ...row, last_used_at: at }));
    },
    insertAgent(row: AgentRow) {
      insert(t.agents, row.id, row, (other) => other.registered_seq === row.registered_seq);
    },
    updateAgent(id: string, version: number, change: AgentChange) {
      const row = t.agents.get(id);
      if (row === undefined || row.version !== version) return false;
      t.agents.set(id, copyOf({ ...row, ...given(change), version: version + 1 }));
      return true;
    },
    insertPolicy(row: PolicyRow) {
      insert(t.policies, row.id, row, (other) => other.name === row.name);
    },
    updatePolicy(id: string, change: Partial<PolicyRow>) {
      const row = t.policies.get(id);
      if (row !== undefined) t.policies.set(id, copyOf({ ...row, ...given(change) }));
      return row !== undefined;
    },
    insertPolicyVersion(row: PolicyVersionRow) {
      mustExist(t.policies.get(row.policy_id), `policy ${row.policy_id}`);
      insert(t.policyVersions, keyOf(row.policy_id, row.version), row);
    },
    putPolicySet(row: PolicySetRow) {
      if (t.policySets.get(row.digest) === undefined) t.policySets.set(row.digest, copyOf(row));
    },
    ...deliveryWrites(t),
    foldSums: () => 0,
    putMeta(name: string, value: string) {
      t.meta.set(name, copyOf({ value }));
    },
  };
}
