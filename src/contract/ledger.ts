/** The ledger's interface for plugins and the rest of the core. */
import type { ActionRequest } from "../domain/actions.ts";
import type { EntryBody } from "../domain/entries.ts";
import type { BreakGlassUses } from "../domain/break-glass.ts";
import type { SuggestedRules } from "../domain/suggested-rules.ts";
import type { Delegations } from "../domain/delegations.ts";
import type { Grants } from "../domain/grants.ts";
import type { LegalHolds } from "../domain/legal-holds.ts";
import type { LogKeyProof } from "../domain/log-keys.ts";
import type { Attributes, Facts } from "../domain/policy/policy-types.ts";
import type { Stops } from "../domain/stops.ts";
import type { Users } from "../domain/users.ts";
import type { AppendedEntry, Credential } from "./host.ts";
import type { ActivePolicies } from "./active-policies.ts";
import type { StopFacts } from "./stops.ts";
import type {
  DocumentReads,
  DocumentWrites,
  EntryRow,
  IdempotencyLookup,
  LedgerHead,
  HistorySpan,
  LimitSpan,
  StorageTransaction,
} from "./storage.ts";

/** The facts of a decision that concern the agent, and its own attributes. */
export interface AgentFacts extends Pick<Facts, "agent" | "require_registered_agents" | "rejection_holds_ms"> {
  attributes: Pick<Attributes, "agent_groups" | "agent_metadata">;
}

/** A job's access to its batch. Reads see the writes of all earlier jobs in the batch. */
export interface LedgerTransaction extends Omit<
  StorageTransaction,
  "append" | "putCheckpoint" | "head" | keyof DocumentReads | keyof DocumentWrites
> {
  /** The service's time in milliseconds, read once per batch. Never earlier than the last ledger entry. */
  readonly now: number;
  /** The active policy set, read under the ledger's lock. */
  readonly activePolicies: ActivePolicies;
  /**
   * Adds an entry to the batch, and canonicalises, numbers and hashes it. `submittedBy` is the key that submitted the
   * entry's action. Throws TypeError if no plugin declares the entry type, if the data does not match the declared
   * schema, or if a plugin's entry names an action without its submitter.
   */
  record(entry: EntryBody, submittedBy?: string): AppendedEntry;
  /**
   * Registers a write that must change a row, without waiting for it, so that later jobs need not wait either. The
   * batch awaits the write before it commits. If the write resolves to false, the batch runs again without this job.
   * Make this the job's last write, and return the row as the write leaves it.
   */
  expectChange(write: Promise<boolean>): void;
  /**
   * Reads the credential again under the lock. Rejects with INVALID_CREDENTIAL if the key was revoked or expired after
   * the request was authenticated.
   */
  confirm(credential: Credential): Promise<Credential>;
  /** Reads the agent's facts for a decision under the lock. */
  agentFacts(agentId: string): Promise<AgentFacts>;
  /** Returns the stops that apply to an action, including changes made earlier in this batch. */
  stopFacts(action: Pick<ActionRequest, "agent_id" | "tool">): StopFacts;
  readonly stops: Stops;
  /** All legal holds, including changes made earlier in this batch. */
  readonly legalHolds: LegalHolds;
  /** All users, including changes made earlier in this batch. */
  readonly users: Users;
  /** All grants, including changes made earlier in this batch. */
  readonly grants: Grants;
  /** All delegations, including changes made earlier in this batch. */
  readonly delegations: Delegations;
  /** All break-glass approvals, including changes made earlier in this batch. */
  readonly breakGlass: BreakGlassUses;
  /** All suggested rules, including changes made earlier in this batch. */
  readonly suggestedRules: SuggestedRules;
  /** Activates this policy set when the batch commits. The job must also record an entry. */
  activatePolicySet(digest: string): Promise<void>;
  /** Invalidates the caches of other processes after a change of a key, user, agent, stop, legal hold, grant or delegation. The job must also record an entry. */
  bumpEpoch(): void;
}

/**
 * Work for one batch. Check first, then write: a `Refusal` before the first write rejects only this job, but any later
 * error makes the batch run again without it. A job can run more than once, so it must keep no state between runs.
 */
export type Job<T> = (tx: LedgerTransaction) => Promise<T>;

/** A job that needs no policy, so it runs even if the active policy set cannot be loaded. */
export type UrgentJob<T> = (tx: Omit<LedgerTransaction, "activePolicies">) => Promise<T>;

/**
 * Thrown by a job that needs work too slow for the ledger's lock. The batch rolls back, calls `prepare` without the
 * lock and runs again. If `prepare` returns a promise, the job moves to a later batch, so that other jobs do not wait
 * for it.
 */
export class PreparationRequired extends Error {
  readonly prepare: () => void | Promise<void>;
  constructor(what: string, prepare: () => void | Promise<void>) {
    super(`${what} must be prepared before the ledger's lock is taken`);
    this.name = "PreparationRequired";
    this.prepare = prepare;
  }
}

/** Keys of the rows that a job will probably read under the lock, so that they can be prefetched. */
export interface PrefetchKeys {
  /** Id of an action: its row, its entries, and the key that submitted it. */
  history?: string;
  idempotency?: IdempotencyLookup;
  limits?: readonly LimitSpan[];
  pastActions?: readonly HistorySpan[];
}

/** Called before each run of the job's batch. Errors are ignored, because the job will encounter them again. */
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
   * Proofs of the log's key changes that the checkpoint covers, in order. A client that pinned an earlier key follows
   * them.
   */
  log_keys: LogKeyProof[];
}

/** A current or former key that signs checkpoints. */
export interface LogKeyView {
  /** C2SP verifier key. */
  vkey: string;
  /** Sequence number of the entry that introduced the key; null for the first key. */
  since: number | null;
  /** For a replaced key, the time until which it also signs; null for the current key. Milliseconds. */
  until: number | null;
}

export interface Ledger {
  /** Resolves after the job's batch is committed. Rejects with the job's Refusal, or StorageError when the outcome is unknown or negative. */
  transact<T>(job: Job<T>, prefetch?: Prefetch): Promise<T>;
  /** Like `transact`, in a separate batch ahead of all waiting jobs. */
  transactFirst<T>(job: UrgentJob<T>): Promise<T>;
  /** Returns the committed head: from memory if one process has the store to itself, otherwise from the store. */
  head(): Promise<LedgerHead>;
  /** Returns the signed checkpoint of the committed head. */
  checkpoint(): Promise<SignedCheckpoint>;
  /** Returns an inclusion proof under the current checkpoint, or under another checkpoint of this log. */
  inclusion(index: number, under?: SignedCheckpoint): Promise<InclusionProof>;
  /** Returns the newest checkpoint that a witness cosigned, with its cosignatures; null if there is none. */
  witnessed(): Promise<SignedCheckpoint | null>;
  /** Returns the proof that the tree of size `second` extends the tree of size `first`. RFC 6962 section 2.1.2. */
  consistency(first: number, second: number): Promise<Uint8Array[]>;
  rootAt(size: number): Promise<Uint8Array>;
  /**
   * Returns the number of committed entries that this process's subscribers have not received yet; 0 without
   * subscribers. Rejects with StorageError.
   */
  lag(): Promise<number>;
  /**
   * Returns by how much the service's clock is ahead of this machine's, because it must not be earlier than the last
   * entry. Milliseconds; usually 0.
   */
  clockAhead(): number;
  /** Verifier key of the log, as C2SP vkey. Current as of the last entry that this process has followed. */
  readonly vkey: string;
  /** Returns all keys of the log, the current one first. Rejects with StorageError. */
  logKeys(): Promise<LogKeyView[]>;
  /** Returns the proofs of the log's key changes that the checkpoint covers, in order. Rejects with StorageError. */
  logKeyProofs(under: SignedCheckpoint): Promise<LogKeyProof[]>;
  readonly origin: string;
  /**
   * Calls `listener` with committed entries of all processes, in order, from now on. Returns a function that stops it.
   * While there is a subscriber, this process reads the entries of other processes.
   */
  subscribe(listener: (entries: readonly EntryRow[]) => void): () => void;
  /**
   * Calls `listener` with the entries that this process committed. Leaves out entries whose commit reported a failure.
   */
  onRecorded(listener: (entries: readonly EntryRow[]) => void): () => void;
  /**
   * Calls `listener` after each batch of this process, committed or not, with the milliseconds for which it held the
   * lock of the ledger's head. Returns a function that stops it.
   */
  onBatch(listener: (lockedMs: number) => void): () => void;
  /**
   * Calls `listener` when any process has appended entries, with the reported size of the ledger. The size is a hint: read the
   * head if it matters.
   */
  onGrowth(listener: (size: number) => void): () => void;
}
