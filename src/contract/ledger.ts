/** The ledger as plugins and the rest of the core use it. */
import type { LogKeyProof } from "../domain/log-keys.ts";
import type { Job, LedgerTransaction, UrgentJob } from "./host.ts";
import type { EntryRow, IdempotencyLookup, LedgerHead, LimitSpan } from "./storage.ts";

/** What a job is likely to read under the lock. The job reads anything else when it needs it. */
export interface PrefetchKeys {
  /** Id of an action: its row, its entries, and the key that submitted it. */
  history?: string;
  idempotency?: IdempotencyLookup;
  limits?: readonly LimitSpan[];
}

/** Called before each run of the job's batch. An error is ignored here, because the job will meet it again. */
export type Prefetch = (tx: Pick<LedgerTransaction, "now" | "activePolicies">) => PrefetchKeys;

export interface SignedCheckpoint {
  size: number;
  root: Uint8Array;
  /** Signed-note text. */
  note: string;
}

export interface InclusionProof {
  index: number;
  size: number;
  path: Uint8Array[];
  checkpoint: SignedCheckpoint;
  /** Where the log's key was changed below that size, in order: who pinned an earlier one follows from it. */
  log_keys: LogKeyProof[];
}

/** A key that checkpoints are signed with, or were. */
export interface LogKeyView {
  /** C2SP verifier key. */
  vkey: string;
  /** Of the entry that made it the log's; null for the first. */
  since: number | null;
  /** Until when it signs along, of one that another has followed. Milliseconds; null for the log's key. */
  until: number | null;
}

export interface Ledger {
  /** Resolves after the job's batch is committed. Rejects with the job's Refusal, or StorageError when the outcome is unknown or negative. */
  transact<T>(job: Job<T>, prefetch?: Prefetch): Promise<T>;
  /** The same in a batch of its own, before every job that waits. */
  transactFirst<T>(job: UrgentJob<T>): Promise<T>;
  /** The committed head: the last one this process knows when the store is exclusive, else a fresh read. */
  head(): Promise<LedgerHead>;
  /** Signed checkpoint of the committed head. */
  checkpoint(): Promise<SignedCheckpoint>;
  /** Under the checkpoint of this moment, or under another of this log. */
  inclusion(index: number, under?: SignedCheckpoint): Promise<InclusionProof>;
  /** The newest checkpoint that a witness cosigned, with its cosignatures; null where there is none. */
  witnessed(): Promise<SignedCheckpoint | null>;
  /** Proof that `second` extends `first`. RFC 6962 section 2.1.2. */
  consistency(first: number, second: number): Promise<Uint8Array[]>;
  rootAt(size: number): Promise<Uint8Array>;
  /** Committed entries that this process's subscribers have not been given yet; 0 without any. Rejects with StorageError. */
  lag(): Promise<number>;
  /** By how much the service's clock is ahead of this machine's, because the last entry is. Milliseconds; mostly 0. */
  clockAhead(): number;
  /** Verifier key of the log, as C2SP vkey, as far as this process has followed the ledger. */
  readonly vkey: string;
  /** Every key the log has had, its present one first. Rejects with StorageError. */
  logKeys(): Promise<LogKeyView[]>;
  /** Where the log's key was changed below that size, in order. Rejects with StorageError. */
  logKeyProofs(under: SignedCheckpoint): Promise<LogKeyProof[]>;
  readonly origin: string;
  /**
   * Calls `listener` with committed entries, in order, from about now on. Returns a function that stops it. While
   * anybody subscribes, this process reads what the others write.
   */
  subscribe(listener: (entries: readonly EntryRow[]) => void): () => void;
  /** The same with those that this process committed; one whose commit seemed to fail is not among them. */
  onRecorded(listener: (entries: readonly EntryRow[]) => void): () => void;
  /** Calls `listener` when the ledger has grown, whoever wrote, with the size that it is said to have: a hint. */
  onGrowth(listener: (size: number) => void): () => void;
}
