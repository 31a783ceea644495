/**
 * What the ledger and the resources need of a database, and what it promises them.
 *
 * Rows carry snake_case names because they mirror ledger entries and API documents. Times are
 * integer milliseconds since the epoch. Digests in rows are lowercase hex; digests of the tree are
 * raw 32-byte arrays. Strings hold any well-formed Unicode, U+0000 included, and compare exactly;
 * what cannot be given back as it was (a lone surrogate, an integer that a double does not hold) is
 * refused.
 *
 * Failures: a method that cannot do its work rejects with `StorageError`. After `write` has
 * rejected with one, the caller does NOT know whether the transaction was committed: it must read
 * the head again before it relies on anything.
 */
import type { ActionStatus } from "../domain/actions.ts";
import type { Effect, ReasonCode, Risk } from "../domain/policy/types.ts";
import type { Visibility } from "../domain/visibility.ts";

export type EntryType = "decision" | "approval" | "execution" | "policy_set" | "api_key" | "agent";

/** One ledger record. `bytes` is what `leaf_hash` covers: SHA-256(0x00 ‖ bytes). */
export interface EntryRow {
  seq: number;
  type: EntryType;
  leaf_hash: Uint8Array;
  bytes: Uint8Array;
  action_id: string | null;
  agent_id: string | null;
  /** Key that submitted the action the entry speaks of; decides who may see it. */
  submitted_by: string | null;
  created_at: number;
}

/** A full tile: 256 hashes of `level`, and the root over them (a node of level + 1). */
export interface TileRow {
  level: number;
  index: number;
  /** 256 × 32 bytes. */
  hashes: Uint8Array;
  root: Uint8Array;
}

/** The one mutable row of the ledger. */
export interface LedgerHead {
  size: number;
  root: Uint8Array;
  /** Roots of the maximal perfect subtrees, largest first (the tree's right edge). Empty when size is 0. */
  edge: Uint8Array[];
  /** Digest of the active policy set, or null before the first activation. */
  policy_set: string | null;
  /** Grows whenever a key or an agent changes; what was cached under an older one is stale. */
  epoch: number;
}

export interface ActionRow {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  /** Canonical JSON of `{agent_id, context, operation, params, tool}`. */
  request: string;
  request_hash: string;
  /** 32 random bytes, hex. The ledger holds SHA-256(salt ‖ request_hash). */
  salt: string;
  status: ActionStatus;
  decision: Effect;
  reason: string;
  reason_code: ReasonCode;
  risk_level: Risk | null;
  policy: string | null;
  rule: string | null;
  policy_version: number | null;
  policy_hash: string | null;
  decision_seq: number;
  decision_hash: string;
  /** Key that submitted, with its binding and owner at that moment: approvals are judged against these. */
  submitted_by: string;
  submitted_agent: string | null;
  submitted_owner: string | null;
  /** Approvals needed; null unless approval was asked for. */
  quorum: number | null;
  /** When a pending approval expires; null unless approval was asked for. */
  expires_at: number | null;
  /** Set when the action became allowed or approved: the permit's issue time and end. */
  permit_issued_at: number | null;
  permit_expires_at: number | null;
  started_at: number | null;
  started_by: string | null;
  /** Canonical JSON of `{error, meta, success}` once reported. */
  result: string | null;
  /** From the submission to a person's verdict; null unless a person has decided. */
  waited_ms: number | null;
  created_at: number;
  updated_at: number;
}

/** What a transition may change besides the status. */
export type ActionChange = Partial<
  Pick<
    ActionRow,
    | "reason"
    | "reason_code"
    | "permit_issued_at"
    | "permit_expires_at"
    | "started_at"
    | "started_by"
    | "result"
    | "waited_ms"
  >
> & { status: ActionStatus; updated_at: number };

/** The condition of a compare-and-set. All of it is tested by the statement that makes the change. */
export interface ActionGuard {
  status: ActionStatus;
  /** The row's `expires_at` must be later than this. */
  expires_after?: number;
  /** The row's `expires_at` must not be later than this. */
  expired_by?: number;
  /** The row's `permit_expires_at` must be later than this. */
  permit_after?: number;
}

export interface ApprovalRow {
  action_id: string;
  /** Who approved or denied: the owner of the key, or the key itself. Unique per action. */
  principal: string;
  key_id: string;
  approve: boolean;
  reason: string | null;
  self_approval: boolean;
  seq: number;
  created_at: number;
}

export interface KeyRow {
  id: string;
  name: string;
  /** SHA-256 of the key's value, hex. The value itself is never stored. */
  hash: string;
  /** First characters of the value, to recognise it by. */
  prefix: string;
  scopes: string[];
  agent_id: string | null;
  owner: string | null;
  created_by: string | null;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  /** When it was last used, to within the minutes between two writes; null when never. */
  last_used_at: number | null;
}

/** A registered agent. `metadata` is canonical JSON. */
export interface AgentRow {
  /** What actions name as `agent_id`. */
  id: string;
  name: string;
  description: string | null;
  /** Globs; null for every tool. */
  allowed_tools: string[] | null;
  metadata: string;
  suspended_at: number | null;
  suspended_reason: string | null;
  /** From 1; grows with every change. */
  version: number;
  /** Sequence of the entry that registered it: the order of lists. Unique. */
  registered_seq: number;
  created_by: string | null;
  created_at: number;
  updated_at: number;
}

export type AgentChange = Partial<Pick<AgentRow, "name" | "description" | "allowed_tools" | "metadata" | "suspended_at" | "suspended_reason">> & { updated_at: number };

export interface AgentFilter {
  suspended?: boolean;
  /** Only agents whose `registered_seq` is smaller: the cursor. */
  before_seq?: number;
  offset?: number;
  limit: number;
}

export interface PolicyRow {
  id: string;
  name: string;
  /** Name of the policy source that manages it, or null when the API does. */
  managed_by: string | null;
  latest_version: number;
  active_version: number | null;
  /** A deleted policy keeps its name and its versions: recorded decisions name them. */
  deleted_at: number | null;
  created_at: number;
  updated_at: number;
}

/** Immutable. `definition` is canonical JSON of a PolicyDocument; `digest` its SHA-256, hex. */
export interface PolicyVersionRow {
  policy_id: string;
  version: number;
  definition: string;
  digest: string;
  created_by: string | null;
  created_at: number;
}

/** Immutable and kept for ever. `document` is canonical JSON; `digest` its SHA-256, hex. */
export interface PolicySetRow {
  digest: string;
  document: string;
  created_at: number;
}

export interface IdempotencyRow {
  key_id: string;
  /** Method and path template, e.g. `POST /v1/actions`. */
  route: string;
  idempotency_key: string;
  /** SHA-256 of the canonical body, hex. */
  body_hash: string;
  /** Id of what the first request created. */
  resource_id: string;
  created_at: number;
}

export type { Visibility };

export interface ActionFilter {
  visibility: Visibility;
  status?: ActionStatus;
  agent_id?: string;
  tool?: string;
  operation?: string;
  /** Inclusive. */
  since?: number;
  /** Exclusive. */
  until?: number;
  /** Only actions whose `decision_seq` is smaller: the cursor. */
  before_seq?: number;
  offset?: number;
  limit: number;
}

/** Decisions of a stretch of the ledger. */
export interface DecisionFilter {
  visibility: Visibility;
  /** Inclusive. */
  from_seq: number;
  /** Exclusive: the cursor. */
  before_seq: number;
  /** Of the action's creation; inclusive. */
  since: number;
  /** Exclusive. */
  until: number;
  limit: number;
}

/** What a decision was made from, and the entry that records it. */
export interface DecisionInput {
  seq: number;
  action_id: string;
  created_at: number;
  /** Canonical JSON, as in the action's row. */
  request: string;
  /** The decision's entry. */
  bytes: Uint8Array;
}

/** What a delivery tells: somebody is asked, asked because others did not decide, asked again, told that it is over; or an entry of the ledger for a feed. */
export type DeliveryKind = "approval_requested" | "approval_escalated" | "approval_reminder" | "approval_closed" | "event";

/**
 * `scheduled`: not before `next_at`, and nothing waits for it. `waiting`: in the destination's line. `delivered`.
 * `dead`: given up, may be retried. `obsolete`: there is nothing to say any more.
 */
export type DeliveryState = "scheduled" | "waiting" | "delivered" | "dead" | "obsolete";

/** One message to one destination. It holds no token: links are made when it is sent. */
export interface DeliveryRow {
  /** Order of all deliveries, given by the store: larger than every one that is there. */
  position: number;
  /** Unique; the same for every attempt. */
  id: string;
  /** Deliveries of one destination are made one after another. */
  destination: string;
  /** Name of the notifier, and whom or what it is to tell. */
  notifier: string;
  recipient: string;
  kind: DeliveryKind;
  /** The ledger entry that caused it. */
  seq: number;
  action_id: string | null;
  /** Owner that a link token is made for; null where it goes to no one person. */
  person: string | null;
  /** Channel of a policy; null for feeds. */
  channel: string | null;
  state: DeliveryState;
  attempts: number;
  /** No attempt before. */
  next_at: number;
  /** Given up after. */
  give_up_at: number;
  last_error: string | null;
  /** What the notifier answered, to find its message again. */
  reference: string | null;
  delivered_at: number | null;
  created_at: number;
  updated_at: number;
}

export type DeliveryChange = Partial<Pick<DeliveryRow, "attempts" | "next_at" | "give_up_at" | "last_error" | "reference" | "delivered_at">> & { state: DeliveryState; updated_at: number };

export interface DeliveryFilter {
  state?: DeliveryState;
  destination?: string;
  action_id?: string;
  /** Only smaller positions: the cursor. */
  before_position?: number;
  offset?: number;
  limit: number;
}

/** One action that counted against a policy's limit. Unique by limit, subject and action. */
export interface LimitUseRow {
  policy: string;
  /** Name of the limit inside the policy. */
  limit_name: string;
  /** What it is counted for. */
  subject: string;
  action_id: string;
  at: number;
  /** Millionths; not negative. */
  amount: number;
  /** When it cannot count any more. */
  until: number;
}

/** What to count. Actions are counted by the time they were created. */
export interface AnalyticsQuery {
  visibility: Visibility;
  /** At least two ascending instants: the first is inclusive, the last exclusive, and between them lie the segments of the series. */
  boundaries: readonly number[];
}

/** Counts of one segment by value; values that do not occur are absent. */
export interface SeriesCounts {
  status: Partial<Record<ActionStatus, number>>;
  decision: Partial<Record<Effect, number>>;
}

/** Counts by value, in no order, none of them zero. All of one moment. */
export interface ActionCounts {
  status: { value: string; count: number }[];
  decision: { value: string; count: number }[];
  tool: { value: string; count: number }[];
  agent: { value: string; count: number }[];
  /** Null and null: decided by no policy. */
  rule: { policy: string | null; rule: string | null; count: number }[];
  /** One for each segment. */
  series: SeriesCounts[];
  /** Of `waited_ms`, by nearest rank; null where there is none. */
  waits: { count: number; p50: number | null; p95: number | null };
}

/** Reads. Outside a transaction they see committed state only; inside one also its own writes. */
export interface StorageReader {
  head(): Promise<LedgerHead>;
  /** The newest signed checkpoint that was stored, as signed-note text. */
  checkpoint(): Promise<{ size: number; note: string } | null>;
  /** Entries `from <= seq < to`, ascending. */
  entries(from: number, to: number): Promise<EntryRow[]>;
  entryByHash(leafHash: Uint8Array): Promise<EntryRow | null>;
  /** All entries that speak of one action, ascending. */
  entriesOfAction(actionId: string): Promise<EntryRow[]>;
  /** Leaf hashes `from <= seq < to`, ascending. */
  leafHashes(from: number, to: number): Promise<Uint8Array[]>;
  tile(level: number, index: number): Promise<TileRow | null>;
  /** Roots of the tiles `from <= index < to` of a level, ascending. */
  tileRoots(level: number, from: number, to: number): Promise<Uint8Array[]>;

  action(id: string): Promise<ActionRow | null>;
  /** Newest first (descending `decision_seq`). */
  actions(filter: ActionFilter): Promise<ActionRow[]>;
  /** Sequences of the first and the last decision of actions that were created in the span; null when there is none. */
  decisionSpan(since: number, until: number): Promise<{ first: number; last: number } | null>;
  /** Newest first (descending `seq`). */
  decisions(filter: DecisionFilter): Promise<DecisionInput[]>;
  /** Pending actions with `expires_at <= now`, oldest expiry first. */
  overdueActions(now: number, limit: number): Promise<ActionRow[]>;
  /** The smallest `expires_at` of a pending action. */
  nextExpiry(): Promise<number | null>;
  approvals(actionId: string): Promise<ApprovalRow[]>;
  analytics(query: AnalyticsQuery): Promise<ActionCounts>;
  idempotency(keyId: string, route: string, idempotencyKey: string): Promise<IdempotencyRow | null>;

  keyByHash(hash: string): Promise<KeyRow | null>;
  key(id: string): Promise<KeyRow | null>;
  /** Newest first, revoked ones included. */
  keys(): Promise<KeyRow[]>;

  agent(id: string): Promise<AgentRow | null>;
  /** Newest first (descending `registered_seq`). */
  agents(filter: AgentFilter): Promise<AgentRow[]>;

  policy(id: string): Promise<PolicyRow | null>;
  policyByName(name: string): Promise<PolicyRow | null>;
  /** By name, deleted ones included. */
  policies(): Promise<PolicyRow[]>;
  policyVersion(policyId: string, version: number): Promise<PolicyVersionRow | null>;
  /** Newest first. */
  policyVersions(policyId: string): Promise<PolicyVersionRow[]>;
  policySet(digest: string): Promise<PolicySetRow | null>;

  delivery(id: string): Promise<DeliveryRow | null>;
  /** Newest first (descending `position`). */
  deliveries(filter: DeliveryFilter): Promise<DeliveryRow[]>;
  /** Ascending. */
  deliveriesOfAction(actionId: string): Promise<DeliveryRow[]>;
  /** The first waiting delivery of each destination, where its `next_at <= now`; ascending. */
  dueDeliveries(now: number, limit: number): Promise<DeliveryRow[]>;
  /** The smallest `next_at` of scheduled deliveries and of the first waiting one of each destination. */
  nextDelivery(): Promise<number | null>;

  /** How many uses with `at >= since`, and the sum of their amounts, at most 2^53 - 1. */
  limitUsed(policy: string, limitName: string, subject: string, since: number): Promise<{ count: number; sum: number }>;

  /** Small facts about the store itself (the log's origin, its key). */
  meta(name: string): Promise<string | null>;
}

/**
 * The writes of one transaction. None is visible to others before `write` resolves. A method that
 * rejects loses the transaction: every later one rejects too, and `write` rolls back and rejects,
 * also when `work` swallows the error. After `work` has ended every method rejects.
 */
export interface StorageTransaction extends StorageReader {
  /**
   * Appends entries and moves the head. `entries[0].seq` must be the current size, the rest follow
   * without a gap, `head.size` is the size after, and `head.epoch` is not smaller than before; otherwise it
   * rejects and the transaction is lost. Without entries it moves the rest of the head.
   */
  append(entries: readonly EntryRow[], tiles: readonly TileRow[], head: LedgerHead): Promise<void>;
  /** Replaces the stored checkpoint unless a larger one is stored. */
  putCheckpoint(size: number, note: string): Promise<void>;

  insertAction(row: ActionRow): Promise<void>;
  /** Compare-and-set in one statement. False, and nothing changed, when the guard does not hold. */
  updateAction(id: string, guard: ActionGuard, change: ActionChange): Promise<boolean>;
  /** False, and nothing changed, when this principal already voted on the action. */
  insertApproval(row: ApprovalRow): Promise<boolean>;
  insertIdempotency(row: IdempotencyRow): Promise<void>;

  insertKey(row: KeyRow): Promise<void>;
  /** False when there is no such key or it is revoked already. */
  revokeKey(id: string, at: number): Promise<boolean>;
  /** Moves `last_used_at` forward; never back. Nothing happens for a key that is not there. */
  touchKey(id: string, at: number): Promise<void>;

  insertAgent(row: AgentRow): Promise<void>;
  /** Compare-and-set: false, and nothing changed, unless the stored version is `version`, which grows by one. */
  updateAgent(id: string, version: number, change: AgentChange): Promise<boolean>;

  insertPolicy(row: PolicyRow): Promise<void>;
  updatePolicy(
    id: string,
    change: Partial<Pick<PolicyRow, "managed_by" | "latest_version" | "active_version" | "deleted_at">> & { updated_at: number },
  ): Promise<boolean>;
  insertPolicyVersion(row: PolicyVersionRow): Promise<void>;
  /** Keeps the stored row when the digest is known. */
  putPolicySet(row: PolicySetRow): Promise<void>;

  /** The position is the store's to give. */
  insertDelivery(row: Omit<DeliveryRow, "position">): Promise<void>;
  /** Compare-and-set: false, and nothing changed, unless the delivery has this state and this many attempts. */
  updateDelivery(id: string, guard: Pick<DeliveryRow, "state" | "attempts">, change: DeliveryChange): Promise<boolean>;
  /** Makes scheduled deliveries with `next_at <= now` wait. Answers how many. */
  releaseDeliveries(now: number): Promise<number>;
  /** Removes up to `max` that are over (neither scheduled nor waiting) and were last changed before, unless their action still is pending: reminders and the end refer to them. Answers how many. */
  pruneDeliveries(before: number, max: number): Promise<number>;

  insertLimitUse(row: LimitUseRow): Promise<void>;
  /** Removes what an action counted. */
  releaseLimitUses(actionId: string): Promise<void>;
  /** Removes up to `max` uses with `until <= now`. Answers how many. */
  pruneLimitUses(now: number, max: number): Promise<number>;

  putMeta(name: string, value: string): Promise<void>;

  /**
   * Takes up to `max` more actions into what makes `analytics` fast, oldest first, and answers how many. It changes
   * nothing that anybody can read. A store that needs no such thing answers 0.
   */
  foldSums(max: number): Promise<number>;
}

export interface Storage extends StorageReader {
  readonly name: string;
  /**
   * True when no other process can write while this one has the store open. The core then trusts
   * the head it last committed; without it, it reads the head before it trusts anything cached.
   */
  readonly exclusive: boolean;
  /**
   * Takes the lock, migrates, and leaves an empty store with a head of size 0. Idempotent. `readOnly` looks at a
   * store that others may be writing: no lock, no migration, and everything that writes rejects. A store that is
   * not there rejects then, too.
   */
  open(options?: { readOnly?: boolean }): Promise<void>;
  /** Migrations that the store has had, and that this version knows. More than are known: a newer version migrated it. */
  schema(): Promise<{ applied: number; known: number }>;
  /** Waits for running work. Idempotent. The same object may be opened again. */
  close(): Promise<void>;
  /** Rejects when the store cannot take a write now. */
  ping(): Promise<void>;
  /**
   * Runs `work` in one serialised write transaction that holds the head's lock from its first
   * statement, and commits durably (a crash or power loss after `write` resolved loses nothing).
   * When `work` throws, everything is rolled back and its error is passed on unchanged.
   * `work` runs at most once a call. Calls are served one at a time, in order.
   */
  write<T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T>;
  /**
   * True when `holder` has the lease until `until`: it was free, or had ended by `now`, or was the holder's already
   * (which then ends at `until`, also when that is earlier). In milliseconds of the caller's clock. One statement.
   */
  lease(name: string, holder: string, now: number, until: number): Promise<boolean>;
  /** Leases that have not ended by `now`, in order of name. Those that ended long ago may be forgotten. */
  leases(now: number): Promise<{ name: string; holder: string; until: number }[]>;
  /**
   * Writes a consistent copy of the whole store into a new file, also while others write to the store; for a store
   * that is opened to be read, too. Absent where the database has its own tools for that.
   */
  backup?(path: string): Promise<void>;
  /** For `assent copy`; absent where a store cannot be moved. */
  readonly copying?: StorageCopying;
  /**
   * Calls `changed` soon after any process moved the head. A hint: it may come late, more often than needed, or
   * not at all while a connection is down. Absent where `exclusive`. Resolves to how to stop.
   */
  watch?(changed: () => void): Promise<() => Promise<void>>;
}

/** Tables of a store, in an order in which they can be filled. What can be made again (sums, leases) is not among them. */
export const COPIED_TABLES = ["entries", "tiles", "policies", "policy_versions", "policy_sets", "api_keys", "agents", "actions", "approvals", "idempotency", "deliveries", "limit_uses", "meta"] as const;
export type CopiedTable = (typeof COPIED_TABLES)[number];
/** A row as it is stored. Only stores look inside. */
export type CopiedRow = Readonly<Record<string, string | number | Uint8Array | null>>;

/** A whole store, table by table, into an empty one. The head comes last: until then the copy is no ledger. */
export interface StorageCopying {
  /** Rows behind `after` by primary key, ascending; from the first one when it is null. */
  read(table: CopiedTable, after: CopiedRow | null, limit: number): Promise<CopiedRow[]>;
  /** The last row by primary key. */
  last(table: CopiedTable): Promise<CopiedRow | null>;
  count(table: CopiedTable): Promise<number>;
  /** One durable transaction. A row of a known key is replaced where rows may change, and refused where they may not. */
  write(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>;
  /** Sets the head and the checkpoint as they were read from the source. */
  finish(head: LedgerHead, checkpoint: { size: number; note: string } | null): Promise<void>;
}

/**
 * `full`: no room. `readonly`: may not write. `locked`: another process holds the store. `unavailable`: anything
 * passing. `corrupt`: what was read cannot be. `invalid`: a value that could not be given back as it was; the
 * caller's fault, and nobody else's.
 */
export type StorageErrorKind = "full" | "readonly" | "locked" | "unavailable" | "corrupt" | "invalid";

export class StorageError extends Error {
  readonly kind: StorageErrorKind;
  constructor(kind: StorageErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StorageError";
    this.kind = kind;
  }
}
