/** The ledger's interface for plugins and the rest of the core. */
import type { voidsVotes } from "../domain/action-columns.ts";
import type {
  Actor,
  AgentEntry,
  ApiKeyEntry,
  ChangeEntry,
  DecisionEntry,
  EntryBody,
  ErasingEntry,
  PolicySetEntry,
} from "../domain/entries.ts";
import type { Fold } from "../domain/fold.ts";
import type { PolicyText } from "../domain/recorded-policies.ts";
import type { LogKeyProof } from "../domain/log-keys.ts";
import type { Attributes, Facts } from "../domain/policy/policy-types.ts";
import type { BarTarget, PlacedBar } from "./bar.ts";
import type { StatesReader } from "./states.ts";
import type { AppendedEntry, Credential } from "./host.ts";
import type { RowSeals } from "./row-seals.ts";
import type { ActivePolicies } from "./active-policies.ts";
import type {
  ActionRow,
  ActionWrites,
  AgentRow,
  ApprovalRow,
  ChangedContent,
  DecidedContent,
  DirectoryWrites,
  DocumentReads,
  DocumentWrites,
  EntryRow,
  IdempotencyLookup,
  KeyRow,
  LedgerHead,
  HistorySpan,
  LimitSpan,
  PolicyWrites,
  StorageTransaction,
} from "./storage.ts";

/** An entry that a `RegistryRecorder` records. */
export type RegistryEntry = ApiKeyEntry | AgentEntry | PolicySetEntry;

/** Every entry except those that determine rows, which an `ActionRecorder` or a `RegistryRecorder` records. */
export type RecordableEntry = Exclude<EntryBody, DecisionEntry | ChangeEntry | ErasingEntry | RegistryEntry>;

/** An entry as it was recorded, before it was encoded. */
export interface RecordedEntry {
  readonly seq: number;
  readonly body: EntryBody;
}

/** The facts of a decision about the agent, including the agent's attributes. */
export interface AgentFacts extends Pick<Facts, "agent" | "require_registered_agents" | "rejection_holds_ms"> {
  attributes: Pick<Attributes, "agent_groups" | "agent_metadata">;
}

/** The states of folds and the bars at one size of the ledger, and the time. */
export type Snapshot = Pick<LedgerTransaction, keyof StatesReader | "barFacts" | "placedBar">;

/** The writes of rows that entries determine. Only an `ActionRecorder` and a `RegistryRecorder` call them. */
export type RecordedWrites = Omit<
  ActionWrites & DirectoryWrites & PolicyWrites,
  "noteAsked" | "insertIdempotency" | "deleteIdempotency" | "touchKey" | "updateAction"
>;

/** Writes the rows of actions and votes. The columns that an entry determines always follow from it. */
export interface ActionRecorder {
  /**
   * Records the decision on a submission, and stores the action's row. Call it before the rows of the action's limits and
   * histories are written. Returns the row.
   * @param content the columns for which the entry contains only commitments
   */
  recordDecision(entry: DecisionEntry, content: DecidedContent): ActionRow;
  /**
   * Records an entry about an action, and changes the action's row and votes accordingly. Does not wait for
   * the writes. If the stored row has another status, or its deadline has passed, the batch runs again without
   * this job. Returns the row after the change, and the new vote, if the entry is one.
   * @param row the action before the entry
   * @param history what earlier entries say about the action's votes; null if the entry cannot make votes void
   * @param content those of the columns for which the entry contains only commitments that change
   */
  recordChange(
    row: ActionRow,
    history: Parameters<typeof voidsVotes>[0] | null,
    entry: ChangeEntry,
    content?: Partial<ChangedContent>,
  ): AppendedEntry & { row: ActionRow; vote: ApprovalRow | null };
  /**
   * Records the erasure of an action's content, or of a part of it, and deletes this data.
   * @param digests digests that the row keeps while a rejection is in force; null for none
   */
  recordErasure(
    row: ActionRow,
    entry: ErasingEntry,
    digests: Pick<ChangedContent, "request_hash" | "effective_hash" | "salt"> | null,
  ): Promise<void>;
}

/** A key before it is recorded. */
export type NewKey = Omit<KeyRow, "created_by" | "created_at" | "revoked_at" | "last_used_at">;

/** An agent before the change is recorded. */
export type ChangedAgent = Omit<AgentRow, "registered_seq" | "created_by" | "created_at" | "updated_at">;

/**
 * Records changes of API keys, agents and policies, and writes their rows accordingly. Does not wait for the
 * writes, but later statements of the transaction see them.
 */
export interface RegistryRecorder {
  /**
   * Records that a key was created or revoked. Returns its row after the change. If the stored key was already revoked,
   * the batch runs again without this job.
   * @param by the creator or revoker; null if the first start of the service, a command or a configured enrolment
   *   created the key
   */
  recordKey(change: ApiKeyEntry["change"], key: NewKey, by: Actor | null): KeyRow;
  /**
   * Records a change of an agent. Returns its row after the change. If the stored row does not have the version before
   * `agent.version`, the batch runs again without this job.
   * @param agent the agent after the change
   */
  recordAgent(change: AgentEntry["change"], agent: ChangedAgent, by: Actor | null): AgentRow;
  /**
   * Records changes of policies or of the active policy set. A set that differs from `entry.previous` becomes active
   * when the batch commits.
   * @param texts the texts of the versions that the entry creates, keyed by the id of the policy
   * @param document canonical JSON of the set; not used if the active set stays
   */
  recordPolicies(entry: PolicySetEntry, texts: ReadonlyMap<string, PolicyText>, document: string): void;
}

/** The transaction that a job uses. Reads return the writes of all earlier jobs in the batch. */
export interface LedgerTransaction
  extends
    Omit<
      StorageTransaction,
      | "append"
      | "putCheckpoint"
      | "head"
      | "updateAction"
      | keyof DocumentReads
      | keyof DocumentWrites
      | keyof RecordedWrites
    >,
    ActionRecorder,
    RegistryRecorder {
  /** The service's time in milliseconds, read once per batch. Not earlier than the time of the last ledger entry. */
  readonly now: number;
  /** The active policy set, read under the ledger's lock. */
  readonly activePolicies: ActivePolicies;
  /** Computes and verifies seals of rows. */
  readonly seals: RowSeals;
  /**
   * Canonicalises, numbers and hashes an entry, and adds it to the batch. If a fold reads entries of this type, the
   * epoch increases, so that every process applies the entry and discards its caches. `submittedBy` is the key that submitted the
   * entry's action. The recorders record entries that determine rows. Throws TypeError if no plugin declares the
   * entry type, if the data does not match the declared schema, or if a plugin's entry contains an action without its
   * submitter.
   */
  record(entry: RecordableEntry, submittedBy?: string): AppendedEntry;
  /**
   * Reads the credential again under the lock. Rejects with INVALID_CREDENTIAL if the key was revoked or expired after
   * the request was authenticated, with MISSING_CREDENTIAL if the session has ended, and with KEY_ALTERED if the key in
   * the store differs from the ledger.
   */
  confirm(credential: Credential): Promise<Credential>;
  /** Reads the agent's facts for a decision under the lock. */
  agentFacts(agentId: string): Promise<AgentFacts>;
  /**
   * Returns true if there are fewer than `limit` rows. Each added row must have a ledger entry, because the count is
   * cached between entries.
   * @param name identifies what is counted
   * @param count returns the number, or any number that is not below the limit
   */
  isBelow(name: string, limit: number, count: () => Promise<number>): Promise<boolean>;
  /** Returns the value of a fold, including changes made earlier in this batch. */
  state<State>(fold: Fold<State>): State;
  /** Returns the bars that cover an action now, as the member of its decision's facts. */
  barFacts(target: BarTarget): Pick<Facts, "bars">;
  /** Returns the first bar that was placed after the entry `seq` and covers the target; null if there is none. */
  placedBar(target: BarTarget, seq: number): PlacedBar | null;
  /**
   * Increases the epoch, so that every process re-reads the credentials of its open streams and waiting requests. Use
   * it for a change that no fold reads, such as the end of a session. The job must also record an entry.
   */
  increaseEpoch(): void;
}

/**
 * A callback that runs in a batch. Run all checks before the first write: a `Refusal` before the first write rejects
 * only this job, but any later error makes the batch run again without the job. A job can run more than once, so it
 * must not keep state between runs.
 */
export type Job<T> = (tx: LedgerTransaction) => Promise<T>;

/** A job that does not use policies, so that it runs even if the active policy set cannot be loaded. */
export type UrgentJob<T> = (tx: Omit<LedgerTransaction, "activePolicies">) => Promise<T>;

/**
 * Thrown by a job that needs work that is too slow to do under the ledger's lock. `prepare` is called without the lock,
 * and the job runs again in a later batch, so that other jobs do not wait for it. If the job has written, its batch
 * rolls back and runs again.
 */
export class PreparationRequired extends Error {
  readonly prepare: () => void | Promise<void>;
  constructor(preparation: string, prepare: () => void | Promise<void>) {
    super(`${preparation} must be prepared before the ledger's lock is acquired`);
    this.name = "PreparationRequired";
    this.prepare = prepare;
  }
}

/** Keys of the rows that a job will probably read under the lock, so that they can be prefetched. */
export interface PrefetchKeys {
  /** Id of an action. Prefetches its row, its entries, and the key that submitted it. */
  history?: string;
  idempotency?: IdempotencyLookup;
  limits?: readonly LimitSpan[];
  pastActions?: readonly HistorySpan[];
}

/**
 * Returns the keys of rows to prefetch. Called before each run of the job's batch. Errors are ignored, because the job
 * gets them too.
 */
export type Prefetch = (tx: Pick<LedgerTransaction, "now" | "activePolicies">) => PrefetchKeys;

export interface SignedCheckpoint {
  size: number;
  root: Uint8Array;
  /** The checkpoint as signed-note text. */
  note: string;
}

interface InclusionProof {
  index: number;
  size: number;
  path: Uint8Array[];
  checkpoint: SignedCheckpoint;
  /**
   * Proofs of the log's key changes that the checkpoint covers, in order. A client that pinned an earlier key verifies
   * them to find the current key.
   */
  log_keys: LogKeyProof[];
}

/** A current or former key that signs checkpoints. */
export interface LogKeyView {
  /** C2SP verifier key. */
  vkey: string;
  /** Sequence number of the entry that introduced the key; null for the first key. */
  since: number | null;
  /**
   * For a replaced key, the end of the overlap in which it signs in addition to its successor; null for the current
   * key. Milliseconds since the epoch.
   */
  until: number | null;
}

export interface Ledger {
  /**
   * Resolves after the job's batch is committed. Rejects with the job's error, with SHUTTING_DOWN if the service is
   * stopping, or with StorageError if the commit failed or its outcome is unknown.
   */
  transact<T>(job: Job<T>, prefetch?: Prefetch): Promise<T>;
  /** Like `transact`, in a separate batch ahead of all waiting jobs. */
  transactFirst<T>(job: UrgentJob<T>): Promise<T>;
  /**
   * Returns the committed head. Reads it from memory if no other process can use the store, otherwise from the store.
   */
  head(): Promise<LedgerHead>;
  /** Returns the newest head that this process has read or committed, from memory. */
  seenHead(): LedgerHead;
  /** Returns the signed checkpoint of the committed head. */
  checkpoint(): Promise<SignedCheckpoint>;
  /** Returns a proof that the current checkpoint, or another checkpoint of this log, includes the entry. */
  inclusion(index: number, under?: SignedCheckpoint): Promise<InclusionProof>;
  /** Returns the newest checkpoint that other parties cosigned, with the cosignatures; null if there is none. */
  cosigned(): Promise<SignedCheckpoint | null>;
  /** Stores a checkpoint of this log with its cosignatures, in place of the previous one. Rejects with StorageError. */
  keepCosigned(note: string): Promise<void>;
  /** Returns the proof that the tree of size `second` extends the tree of size `first`. RFC 6962 section 2.1.2. */
  consistency(first: number, second: number): Promise<Uint8Array[]>;
  rootAt(size: number): Promise<Uint8Array>;
  /**
   * Returns the number of committed entries that this process's subscribers have not received yet; 0 without
   * subscribers. Rejects with StorageError.
   */
  lag(): Promise<number>;
  /**
   * Returns the milliseconds since this process committed the first entry that no checkpoint covers; 0 if there is no
   * such entry. Usually at most a few hundred. Beyond ten seconds, `transact` rejects with StorageError.
   */
  unsignedMs(): number;
  /**
   * Returns the milliseconds by which the service's clock is ahead of this machine's clock. Usually 0; more if the last
   * entry has a later time, because the service's clock never goes back.
   */
  clockAhead(): number;
  /** Verifier key of the log, as C2SP vkey. Current as of the last entry that this process has read. */
  readonly vkey: string;
  /** Returns all keys of the log, the current key first. Rejects with StorageError. */
  logKeys(): Promise<LogKeyView[]>;
  /** Returns the proofs of the log's key changes that the checkpoint covers, in order. Rejects with StorageError. */
  logKeyProofs(under: SignedCheckpoint): Promise<LogKeyProof[]>;
  readonly origin: string;
  /**
   * Calls `listener` with each new committed entry of all processes, in order. Returns a function that stops it. While
   * there is a subscriber, this process reads the entries of other processes.
   */
  subscribe(listener: (entries: readonly EntryRow[]) => void): () => void;
  /** Calls `listener` with the entries that this process committed. Omits entries whose commit reported a failure. */
  onRecorded(listener: (entries: readonly RecordedEntry[]) => void): () => void;
  /**
   * Calls `listener` after each batch of this process, committed or not, with the duration in milliseconds for which
   * the batch held the lock of the ledger's head. Returns a function that stops it.
   */
  onBatch(listener: (lockedMs: number) => void): () => void;
  /**
   * Calls `listener` when any process has appended entries, with the reported size of the ledger. The size is a hint;
   * read the head for the exact size.
   */
  onGrowth(listener: (size: number) => void): () => void;
}
