/**
 * Runs one batch in one storage transaction. Runs the jobs, collects their entries, and then appends the entries, the
 * tiles that they complete, and the new head. After a crash during the batch, the store has the old head.
 */
import type { Bars } from "../../contract/bar.ts";
import type { ActivePolicies } from "../../contract/active-policies.ts";
import type { AppendedEntry, Credential } from "../../contract/host.ts";
import type { AgentFacts, LedgerTransaction, RecordedEntry } from "../../contract/ledger.ts";
import type { RowSeals } from "../../contract/row-seals.ts";
import type { EntryRow, LedgerHead, StorageTransaction } from "../../contract/storage.ts";
import { isCoreEntry, isPluginEntry, encodeEntry, type EntryBody } from "../../domain/entries.ts";
import { addFollowedEntry } from "../../domain/followed-digest.ts";
import { toHex } from "../../domain/hash.ts";
import { appendToEdge, rootFromEdge } from "../../domain/merkle.ts";
import { createSnapshot, type States } from "../states.ts";
import { createBatchReads, type BatchReads } from "./batch-reads.ts";
import { computeCompletedTiles } from "./completed-tiles.ts";
import type { CountBounds } from "./count-bounds.ts";
import { findEnvelopeFault } from "./envelope.ts";
import { prefetchRows, type PrefetchedRows } from "./prefetch.ts";
import { createJobTransaction, type BatchMembers, type JobTransaction } from "./job-transaction.ts";
import { JobTimeoutError, type JobOutcome, type QueuedJob } from "./job.ts";
import { runJobs, type PendingWrite } from "./run-jobs.ts";
import type { BatchRows, PastReader, WrittenRows } from "./written-rows.ts";

/** Writes rows that depend on a batch's entries, in the batch's transaction. */
export type WriteDependentRows = (
  tx: StorageTransaction,
  entries: readonly RecordedEntry[],
  now: number,
) => Promise<void>;

export interface BatchContext {
  now: number;
  policies(tx: StorageTransaction, digest: string | null): Promise<ActivePolicies>;
  /** Verifies an action of a history against its entries; see `BatchRows.checkHistory`. */
  verifyPast(
    tx: StorageTransaction,
    ...past: Parameters<PastReader["verifyPast"]>
  ): ReturnType<PastReader["verifyPast"]>;
  confirm(tx: StorageTransaction, credential: Credential, epoch: number, now: number): Promise<Credential>;
  /**
   * Reads the agent's facts. `committed` is false if this batch has changed the epoch, because uncommitted facts must
   * not be cached.
   */
  agentFacts(
    tx: StorageTransaction,
    agentId: string,
    states: States,
    epoch: number,
    committed: boolean,
  ): Promise<AgentFacts>;
  /** Returns the states as of the head that the batch starts from. */
  states(): States;
  bars: Bars;
  /**
   * Confirms the credential of a user's session, or of an agent that acts for a user. `confirm` handles only API keys.
   */
  confirmUser(tx: LedgerTransaction, credential: Credential, epoch: number): Promise<Credential>;
  outbox: WriteDependentRows | null;
  seals: RowSeals;
  written: WrittenRows;
  countBounds: CountBounds;
  /**
   * Time limit for all jobs of a batch in milliseconds. If the batch exceeds it, the running job is removed from the
   * batch.
   */
  jobMs: number;
  /** Returns the fault of a plugin's entry; null if the entry is valid. */
  entryFault(entry: EntryBody): string | null;
}

export interface BatchResult {
  head: LedgerHead;
  entries: EntryRow[];
  /** The same entries before they were encoded. */
  recorded: RecordedEntry[];
  outcomes: JobOutcome[];
  /** The rows of the batch, which are remembered after the commit. */
  written: BatchRows;
}

/**
 * Runs the jobs on `before`, which is the head under the lock. Return the outcomes to callers only after the commit.
 * Throws JobFailedError or JobNotPreparedError for one job, PreparationRequired for the active policy set, or the
 * storage's error.
 */
export async function runBatch(
  tx: StorageTransaction,
  before: LedgerHead,
  jobs: readonly QueuedJob[],
  context: BatchContext,
): Promise<BatchResult> {
  const batch = new Batch(tx, before, context);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new JobTimeoutError()), context.jobMs);
  });
  late.catch(() => undefined);
  try {
    await batch.prefetch(jobs);
    const done = await runJobs(batch, jobs, late);
    batch.seal();
    const head = done.touched ? batch.headAfter() : before;
    // Send these writes directly after the jobs' writes, so that all of them take only one round trip.
    const appended = done.touched ? append(tx, { before, head }, batch, context) : Promise.resolve();
    appended.catch(() => undefined);
    // If a job's write failed, the append also fails. Report the job's error.
    await done.awaitWrites();
    await appended;
    return {
      head,
      entries: batch.rows,
      recorded: batch.recorded,
      outcomes: done.outcomes,
      written: batch.written,
    };
  } finally {
    clearTimeout(timer);
    batch.seal();
  }
}

async function append(
  tx: StorageTransaction,
  { before, head }: { before: LedgerHead; head: LedgerHead },
  batch: Batch,
  { outbox, now }: BatchContext,
): Promise<void> {
  if (outbox !== null && batch.recorded.length > 0) await outbox(tx, batch.recorded, now);
  const tiles = await computeCompletedTiles(tx, before.size, batch.rows);
  await tx.append(batch.rows, tiles, head);
}

class Batch {
  readonly rows: EntryRow[] = [];
  readonly recorded: RecordedEntry[] = [];
  readonly expected: PendingWrite[] = [];
  readonly written: BatchRows;
  /** Whether the running job has written or recorded anything. */
  changed = false;
  private readonly tx: StorageTransaction;
  /** Reads entries, including those of this batch. */
  private readonly entries: BatchReads;
  private readonly context: BatchContext;
  private readonly base: LedgerHead;
  private edge: Uint8Array[];
  private policySet: string | null;
  private epoch: number;
  private followedDigest: Uint8Array;
  private view: JobTransaction | null = null;
  private sealed = false;
  private states: States;
  private prefetched: PrefetchedRows | null = null;

  constructor(tx: StorageTransaction, head: LedgerHead, context: BatchContext) {
    this.tx = tx;
    this.context = context;
    this.base = head;
    this.edge = head.edge;
    this.policySet = head.policy_set;
    this.epoch = head.epoch;
    this.followedDigest = head.followed_digest;
    this.states = context.states();
    this.entries = createBatchReads(tx, head.size, this.rows, (id) => (this.prefetched ?? tx).entriesOfAction(id));
    this.written = context.written.batch(
      {
        actionsById: (ids) => tx.actionsById(ids),
        entriesOfAction: (id) => this.entries.entriesOfAction(id),
        verifyPast: (...past) => context.verifyPast(tx, ...past),
      },
      context.now,
      head.size,
    );
  }

  /** Rejects all later writes of jobs, for example of a job that ended without awaiting all of its work. */
  seal(): void {
    this.sealed = true;
  }

  private move(): void {
    if (this.sealed) throw new Error("the batch has ended; await everything within the job");
    this.changed = true;
  }

  /**
   * Returns a function that returns true if the epoch has changed without a new entry. Other processes could not
   * distinguish such a head from a forked history.
   */
  watchHead(): () => boolean {
    const { epoch } = this;
    const { length } = this.rows;
    return () => this.rows.length === length && this.epoch !== epoch;
  }

  /** Prefetches the rows that the jobs announced, for all jobs at once. */
  async prefetch(jobs: readonly QueuedJob[]): Promise<void> {
    if (jobs.every((pending) => pending.prefetch === undefined)) return;
    const view = await this.makeView();
    this.prefetched = await prefetchRows(
      this.tx,
      jobs.flatMap((pending) => {
        try {
          return pending.prefetch?.(view) ?? [];
        } catch {
          return [];
        }
      }),
    );
  }

  /**
   * Returns the transaction for the next job; null if it must be created again because this batch changed the active
   * policy set.
   */
  currentView(): JobTransaction | null {
    return this.view?.activePolicies.digest === this.policySet ? this.view : null;
  }

  async makeView(): Promise<JobTransaction> {
    const activePolicies = await this.context.policies(this.tx, this.policySet);
    const { tx } = this;
    this.view = createJobTransaction(this.membersOf(activePolicies), {
      tx,
      entries: this.entries,
      prefetched: () => this.prefetched,
      written: this.written,
      wrote: () => this.move(),
    });
    return this.view;
  }

  /** Returns the members of a job's transaction other than the reads and writes of rows. */
  private membersOf(activePolicies: ActivePolicies): BatchMembers {
    const { tx, context } = this;
    return {
      activePolicies,
      seals: context.seals,
      ...createSnapshot(context.now, () => this.states, context.bars),
      record: (entry, submittedBy) => this.record(entry, submittedBy ?? null),
      confirm: async (credential) =>
        (credential.session ?? credential.workload?.user_id ?? null) === null
          ? context.confirm(tx, credential, this.epoch, context.now)
          : context.confirmUser(this.view ?? (await this.makeView()), credential, this.epoch),
      isBelow: (name, limit, count) => {
        const { size: base } = this.base;
        return context.countBounds.isBelow(name, limit, count, { base, size: base + this.rows.length });
      },
      agentFacts: (agentId) => context.agentFacts(tx, agentId, this.states, this.epoch, this.epoch === this.base.epoch),
      expectChange: (write, row) => {
        // Prevent an unhandled rejection: the write may fail before it is awaited, and is not awaited after the batch
        // has ended.
        write.catch(() => undefined);
        this.move();
        this.expected.push({ write, row });
      },
      increaseEpoch: () => {
        this.move();
        this.epoch += 1;
      },
    };
  }

  private record(entry: EntryBody, submittedBy: string | null): AppendedEntry {
    if (!isCoreEntry(entry)) {
      const isPrefixed = isPluginEntry(entry);
      const envelopeFault = isPrefixed ? findEnvelopeFault(entry, submittedBy, this.context.now) : null;
      const fault = envelopeFault ?? this.context.entryFault(entry);
      if (fault !== null) throw new TypeError(`a plugin's entry of type "${entry.type}" cannot be recorded: ${fault}`);
    }
    this.move();
    const seq = this.base.size + this.rows.length;
    const { bytes, leafHash } = encodeEntry(entry, seq);
    const followed = this.states.follows(entry.type);
    if (followed) {
      this.states = this.states.after({ ...entry, seq });
      this.followedDigest = addFollowedEntry(this.followedDigest, leafHash);
      // Other processes read followed entries when the epoch changes.
      this.epoch += 1;
    }
    if (entry.type === "policy_set") this.policySet = entry.policy_set;
    this.edge = appendToEdge(this.edge, seq, leafHash);
    this.recorded.push({ seq, body: entry });
    this.rows.push({
      seq,
      type: entry.type,
      leaf_hash: leafHash,
      bytes,
      action_id: "action_id" in entry ? entry.action_id : null,
      agent_id: "agent_id" in entry ? entry.agent_id : null,
      submitted_by: submittedBy,
      followed,
      created_at: this.context.now,
    });
    return { seq, hash: toHex(leafHash) };
  }

  headAfter(): LedgerHead {
    const head = {
      size: this.base.size + this.rows.length,
      root: this.rows.length === 0 ? this.base.root : rootFromEdge(this.edge),
      edge: this.edge,
      policy_set: this.policySet,
      epoch: this.epoch,
      followed_digest: this.followedDigest,
    };
    // A head changes only with an entry (watchHead).
    return { ...head, seal: this.rows.length === 0 ? this.base.seal : this.context.seals.sealHead(head) };
  }
}
