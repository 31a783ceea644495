/**
 * Combines the sequencer, proofs, checkpoints and the tail in one object that the rest of the core and the plugins use.
 */
import { auditLedger } from "../audit/ledger.ts";
import { TimeLimitError } from "../cluster/time-limit.ts";
import type { Vault } from "../contract/core-host.ts";
import { combineBars } from "../contract/bar.ts";
import { Refusal } from "../contract/errors.ts";
import type { Logger } from "../contract/host.ts";
import type { Job, Ledger, LogKeyView, Prefetch, SignedCheckpoint, UrgentJob } from "../contract/ledger.ts";
import { StorageError, type LedgerHead, type Storage, type StoredHead } from "../contract/storage.ts";
import type { RequestTrace } from "../contract/tracer.ts";
import { currentVkey, type LogKeyProof } from "../domain/log-keys.ts";
import type { BatchContext } from "./commit/batch.ts";
import type { LedgerClock } from "./commit/clock.ts";
import { HistoryAgreement } from "./commit/history-agreement.ts";
import { Sequencer, type SequencerOptions } from "./commit/sequencer.ts";
import type { WrittenRows } from "./commit/written-rows.ts";
import { CommitFollower } from "./follow-commits.ts";
import type { HeadReader } from "./head-reader.ts";
import { createProofReader, type ProofReader } from "./reader.ts";
import { createSharedRead } from "./shared-read.ts";
import { CheckpointStore } from "./sign/checkpoint-store.ts";
import { canSignLater, Checkpoints, readStoredCheckpoint, RETRY_MS } from "./sign/checkpoints.ts";
import {
  compareWithCheckpointFile,
  openCheckpointFile,
  stateCheckpointPath,
  type CheckpointFile,
} from "./sign/checkpoint-file.ts";
import { findMissingHead, openHeadFile, type HeadFile } from "./sign/head-file.ts";
import { proveLogKeys, viewLogKeys, type LogKeyBook } from "./sign/log-key-book.ts";
import { States } from "./states.ts";
import { LedgerTail, type EntryListener, type RecordListener } from "./tail.ts";
import { LedgerTampered } from "./tampered.ts";
import { openCheckpointLog, type AppendedCheckpoints } from "./sign/appended-checkpoints.ts";
import { COSIGNED_CHECKPOINT, readCosignedCheckpoint } from "./sign/cosigned-checkpoint.ts";

/**
 * Minimum interval between the checkpoints that this process signs and stores for heads that other processes committed.
 * Milliseconds.
 */
const STORE_SEEN_INTERVAL_MS = 1000;

const NO_STATES = States.initial([]);

/** Default time limit for the jobs of a batch, long enough for a slow disk or database. Milliseconds. */
const DEFAULT_JOB_TIMEOUT_MS = 60_000;

/**
 * Time for which entries may be unsigned, and time limit for storing a checkpoint outside the store. Beyond it, this
 * process makes no decisions, because a restored copy of the store could lose them without a trace. Milliseconds.
 */
const DEFAULT_SIGNING_LIMIT_MS = 10_000;

export interface LedgerOptions {
  storage: Storage;
  /** Reads the heads of the same storage. */
  heads: HeadReader;
  /** Identifies this process among the processes that share the store. */
  instance: string;
  verify: Vault["verify"];
  /** The log's keys, already read from the store. */
  logKeys: LogKeyBook;
  log: Logger;
  /** Returns the trace of the running request. Default: nothing is traced. */
  trace?(): RequestTrace | null;
  clock: LedgerClock;
  origin: string;
  maxBatch: number;
  /** Time limit for the jobs of a batch in milliseconds. Default: 60,000. */
  jobMs?: number;
  /** Time for which entries may be unsigned, in milliseconds. Default: 10,000. */
  signingLimitMs?: number;
  verifyAtStart: number;
  /** File in which the newest checkpoint is stored outside the store; null: do not store a file. */
  keptCheckpoint: string | null;
  /** File in which the newest committed head is stored outside the store. Default: no file. */
  keptHead?: string | null;
  /**
   * A folder outside the data folder that stores the newest checkpoints of all logs of this machine. Default: no
   * folder.
   */
  stateFolder?: string | null;
  /** A file to which checkpoints are appended. Default: none. */
  checkpointLog?: { path: string; everyMs: number } | null;
  /** Whether to accept a store that is older than the checkpoint outside it. */
  acceptRollback: boolean;
  policies: BatchContext["policies"];
  verifyPast: BatchContext["verifyPast"];
  /** Reads changes of keys and agents. Default: none are read. */
  follow?: SequencerOptions["follow"];
  confirm: BatchContext["confirm"];
  agentFacts: BatchContext["agentFacts"];
  /** Returns the states. Default: there are no folds. */
  states?: BatchContext["states"];
  /** Finders of bars (denials above all policies, such as a stop). Default: none. */
  bars?: BatchContext["bars"];
  /** Confirms the credential of a user's session. Default: users cannot sign in. */
  confirmUser?: BatchContext["confirmUser"];
  outbox: BatchContext["outbox"];
  seals: BatchContext["seals"];
  /** Validates entries of plugins. Default: only the core records entries. */
  entryFault?: BatchContext["entryFault"];
}

export interface OpenLedger extends Ledger {
  /** The rows that this process wrote, or compared with the ledger. */
  readonly written: WrittenRows;
  halted(): string | null;
  /**
   * Waits for all accepted jobs, and stores the last signature. Rejects with TimeLimitError if the disk does not respond.
   */
  close(): Promise<void>;
}

/**
 * Verifies the newest `verifyAtStart` entries of the stored ledger, then accepts jobs. Rejects with LedgerTampered if
 * they do not verify.
 */
export async function openLedger(options: LedgerOptions): Promise<OpenLedger> {
  const { storage, logKeys, heads } = options;
  const start = await heads.refresh();
  const report = await auditLedger(storage, {
    from: Math.max(0, start.size - options.verifyAtStart),
    keys: () => logKeys.keys(),
    verify: options.verify,
    allowUnsigned: options.acceptRollback,
    seals: options.seals,
  });
  if (report.faults.length > 0) throw new LedgerTampered(report.faults);
  const signed = await readStoredCheckpoint(storage, logKeys.keys(), options.verify);
  const ledger = new ProcessLedger(options, start, signed);
  await ledger.start(start);
  return ledger;
}

/** The ledger of one process. */
class ProcessLedger implements OpenLedger {
  readonly origin: string;
  /** Returns a signature of the committed head. Concurrent callers share one signature. */
  readonly checkpoint: () => Promise<SignedCheckpoint>;
  private readonly options: LedgerOptions;
  private readonly proofs: ProofReader;
  private readonly tail: LedgerTail;
  private readonly kept: readonly CheckpointFile[];
  private readonly keptHead: HeadFile | null;
  private readonly appended: AppendedCheckpoints | null;
  private readonly checkpoints: Checkpoints;
  private readonly checkpointStore: CheckpointStore;
  /** Lets processes compare their histories; null if no other process can use the store. */
  private readonly historyAgreement: HistoryAgreement | null;
  private readonly sequencer: Sequencer;
  private readonly follower: CommitFollower;
  private readonly batchListeners = new Set<(lockedMs: number) => void>();
  private seenKeptAt = 0;
  private isClosing = false;
  private readonly signingLimitMs: number;
  /** Whether decisions are refused because entries are unsigned. */
  private isLagging = false;
  /** Why the newest head is not signed; null if no attempt has failed since the last signature. */
  private signingFault: string | null = null;

  constructor(options: LedgerOptions, start: StoredHead, signed: SignedCheckpoint | null) {
    const { storage, heads, log, clock } = options;
    this.options = options;
    this.signingLimitMs = options.signingLimitMs ?? DEFAULT_SIGNING_LIMIT_MS;
    this.origin = options.origin;
    this.proofs = createProofReader(storage);
    this.tail = new LedgerTail(storage, start.size, log, (newest) => clock.observeEntryTime(newest.created_at));
    // Half, so that the cause is known when decisions are refused.
    this.kept = keptCheckpoints(options, this.signingLimitMs / 2);
    this.keptHead = options.keptHead == null ? null : openHeadFile(options.keptHead, log);
    this.checkpoints = this.createCheckpoints(signed);
    this.checkpointStore = new CheckpointStore(storage, this.checkpoints, log);
    this.appended = this.createAppended();
    this.historyAgreement = this.createHistoryAgreement();
    this.sequencer = new Sequencer(this.sequencerOptions(), start);
    this.follower = new CommitFollower({
      storage,
      heads,
      tail: this.tail,
      historyAgreement: this.historyAgreement,
      keepSeen: () => this.keepSeen(),
      log,
    });
    this.checkpoint = createSharedRead(() => this.signHead());
  }

  /**
   * Compares the store with the checkpoints outside it, and then starts to follow other processes. Rejects with
   * LedgerTampered.
   */
  async start(start: StoredHead): Promise<void> {
    const { storage, clock } = this.options;
    await this.compareWithKept(start);
    // The first batch stores this signature with its entries. Therefore entries without a checkpoint prove that the
    // checkpoint was removed.
    if (start.size === 0 && this.checkpoints.latest() === null)
      await this.checkpoints.sign(() => Promise.resolve(start));
    const last = start.size === 0 ? undefined : (await storage.entries(start.size - 1, start.size))[0];
    if (last !== undefined) clock.observeEntryTime(last.created_at);
    await this.follower.start();
    this.signUpTo(start.size);
  }

  /** Signs the entries that a killed process may have left unsigned. Tries again while the store or a file cannot be used. */
  private signUpTo(size: number): void {
    if (this.isClosing || size <= (this.checkpoints.latest()?.size ?? 0)) return;
    this.checkpoint().catch((error: unknown) => {
      if (this.isClosing) return;
      this.signingFailed(error, size);
      if (canSignLater(error)) setTimeout(() => this.signUpTo(size), RETRY_MS).unref?.();
    });
  }

  private signingFailed(error: unknown, size: number): void {
    if (canSignLater(error)) {
      // Log each reason once.
      if (this.signingFault !== error.message)
        this.options.log.warn("the committed head could not be signed yet", { size, error: error.message });
      this.signingFault = error.message;
      return;
    }
    this.sequencer.halt(
      `the committed head (size ${size}) could not be signed: ${error instanceof Error ? error.message : String(error)}; nothing more is written: stop the service and run an audit`,
    );
  }

  private createCheckpoints(signed: SignedCheckpoint | null): Checkpoints {
    const { origin, logKeys } = this.options;
    return new Checkpoints({
      origin,
      signers: (size) => logKeys.signers(size),
      proofs: this.proofs,
      start: signed,
      keep: async (note) => {
        for (const file of this.kept) await file.keep(note);
      },
      signed: () => {
        if (this.isLagging) this.options.log.info("entries are signed again; decisions continue");
        this.isLagging = false;
        this.signingFault = null;
        this.appended?.changed();
        this.checkpointStore.schedule();
      },
      failed: (error, size) => this.signingFailed(error, size),
    });
  }

  /** Returns the reason to refuse decisions if entries have been unsigned for too long, otherwise null. */
  private findSigningLag(): string | null {
    const ms = this.checkpoints.unsignedMs();
    if (ms <= this.signingLimitMs) return null;
    const reason = this.signingFault === null ? "" : `: ${this.signingFault}`;
    const lag = `the newest entries have been unsigned for more than ${this.signingLimitMs / 1000} s${reason}`;
    if (!this.isLagging) this.options.log.error("decisions are refused until entries are signed again", { error: lag });
    this.isLagging = true;
    return lag;
  }

  private createAppended(): AppendedCheckpoints | null {
    const { checkpointLog, clock, log } = this.options;
    if (checkpointLog == null) return null;
    const newest = (): SignedCheckpoint | null => this.checkpoints.latest();
    return openCheckpointLog(checkpointLog.path, checkpointLog.everyMs, newest, clock.now, log, this.signingLimitMs);
  }

  private createHistoryAgreement(): HistoryAgreement | null {
    const { storage, heads, instance, acceptRollback, log } = this.options;
    if (storage.processes === undefined) return null;
    return new HistoryAgreement({
      storage: { write: (work) => storage.write(work), processes: storage.processes },
      instance,
      newest: () => {
        const [seen, signed] = [heads.continuity.seen(), this.checkpoints.latest()];
        return signed !== null && signed.size > seen.size ? signed : seen;
      },
      acceptRollback,
      log,
    });
  }

  private sequencerOptions(): SequencerOptions {
    const { options, checkpoints, checkpointStore } = this;
    const { logKeys, heads } = options;
    return {
      storage: options.storage,
      heads,
      log: options.log,
      trace: options.trace ?? (() => null),
      clock: options.clock,
      maxBatch: options.maxBatch,
      jobMs: options.jobMs ?? DEFAULT_JOB_TIMEOUT_MS,
      policies: options.policies,
      verifyPast: options.verifyPast,
      async follow(tx, before) {
        await options.follow?.(tx, before);
        await logKeys.follow(tx, before.epoch);
        logKeys.assertHeld();
      },
      confirm: options.confirm,
      agentFacts: options.agentFacts,
      states: options.states ?? (() => NO_STATES),
      bars: options.bars ?? combineBars([]),
      confirmUser: options.confirmUser ?? (() => Promise.reject(new Error("users cannot sign in to this service"))),
      outbox: options.outbox,
      seals: options.seals,
      entryFault: options.entryFault ?? (() => "no plugin declares it"),
      unsigned: () => this.findSigningLag(),
      unstoredCheckpoint: () => checkpoints.unstored(),
      checkpointStored: (size) => checkpointStore.stored(size),
      extendsHistory: (head) => checkpoints.extendsHistory(head),
      rootAt: (size) => this.rootAt(size),
      signed: () => checkpoints.latest(),
      seen: () => heads.continuity.seen(),
      keepHead: (head) => this.keptHead?.keep(head),
      agree: () => this.historyAgreement?.awaitAgreement() ?? Promise.resolve(),
      committed: ({ entries, recorded, head }, base) => {
        heads.continuity.advance(head);
        logKeys.applyEntries(entries);
        this.tail.committed(entries, recorded);
        checkpoints.committed(head, base);
      },
      held: (lockedMs) => this.batchListeners.forEach((listener) => listener(lockedMs)),
      idle: () => checkpointStore.schedule(),
    };
  }

  private async compareWithKept(start: StoredHead): Promise<void> {
    const { logKeys, verify, acceptRollback, log } = this.options;
    const stored = {
      size: start.size,
      keys: logKeys.keys(),
      verify,
      rootAt: (size: number) => this.rootAt(size),
      acceptRollback,
      log,
    };
    try {
      for (const file of this.kept) await compareWithCheckpointFile(file, stored);
      await this.compareWithKeptHead(start);
    } catch (error) {
      // Report the missing history to the other processes, so that processes that have read less also reject this
      // database.
      if (error instanceof LedgerTampered && error.seen !== null && start.server?.isSettled === false)
        await this.historyAgreement?.reportNewest(error.seen).catch(() => undefined);
      throw error;
    }
  }

  private async compareWithKeptHead({ size }: StoredHead): Promise<void> {
    const { acceptRollback, log } = this.options;
    const head = this.keptHead?.read() ?? null;
    if (head === null) return;
    const missing = await findMissingHead(head, { size, rootAt: (n) => this.rootAt(n) });
    if (missing === null) return;
    if (!acceptRollback)
      throw new LedgerTampered(
        [`${missing}. To continue with this store, start once with --accept-rollback. The later entries are then lost`],
        head,
      );
    this.keptHead?.setAside(head.size);
    log.warn("the store lacks entries that this process committed; continuing because of --accept-rollback", {
      size,
      kept_size: head.size,
    });
  }

  /**
   * Signs a head that other processes committed and stores the checkpoint outside the store, because this process may
   * be the only one that has read the head.
   */
  private async keepSeen(): Promise<void> {
    const signed = this.checkpoints.latest()?.size ?? 0;
    const { size } = this.options.heads.continuity.seen();
    if (size <= signed || performance.now() - this.seenKeptAt < STORE_SEEN_INTERVAL_MS) return;
    this.seenKeptAt = performance.now();
    await this.checkpoint();
  }

  private async signHead(): Promise<SignedCheckpoint> {
    const halted = this.sequencer.halted();
    if (halted !== null) throw new StorageError("corrupt", halted);
    return this.checkpoints.sign(() => this.followedHead());
  }

  /**
   * Waits until the processes have agreed on the database. Then reads the log's keys up to the head, and returns the
   * head.
   */
  private async followedHead(): Promise<LedgerHead> {
    let read = await this.head();
    if (read.server?.isSettled === false) {
      await this.historyAgreement?.awaitAgreement();
      read = await this.head();
      if (read.server?.isSettled === false)
        throw new StorageError("unavailable", "the processes have not agreed on the database yet");
    }
    await this.options.logKeys.follow(this.options.storage, read.epoch);
    return read;
  }

  get vkey(): string {
    return currentVkey(this.options.logKeys.keys());
  }

  async logKeys(): Promise<LogKeyView[]> {
    await this.followedHead();
    return viewLogKeys(this.options.logKeys.keys());
  }

  logKeyProofs({ size }: SignedCheckpoint): Promise<LogKeyProof[]> {
    return proveLogKeys(this.options.logKeys.keys(), size, this.options.storage, this.proofs);
  }

  transact<T>(job: Job<T>, prefetch?: Prefetch): Promise<T> {
    return this.sequencer.transact(job, prefetch);
  }

  transactFirst<T>(job: UrgentJob<T>): Promise<T> {
    return this.sequencer.transactFirst(job);
  }

  head(): Promise<StoredHead> {
    return this.options.heads.read();
  }

  seenHead(): LedgerHead {
    return this.options.heads.continuity.seen();
  }

  get written(): WrittenRows {
    return this.sequencer.written;
  }

  halted(): string | null {
    return this.sequencer.halted();
  }

  unsignedMs(): number {
    return this.checkpoints.unsignedMs();
  }

  clockAhead(): number {
    return this.options.clock.ahead();
  }

  subscribe(listener: EntryListener): () => void {
    const stop = this.tail.subscribe(listener, this.options.heads.continuity.seen().size);
    // While there were no subscribers, announcements of other processes' entries were ignored, so read the head.
    if (!this.options.storage.exclusive) this.follower.catchUp();
    return stop;
  }

  onBatch(listener: (lockedMs: number) => void): () => void {
    this.batchListeners.add(listener);
    return () => void this.batchListeners.delete(listener);
  }

  onRecorded(listener: RecordListener): () => void {
    return this.tail.onRecorded(listener);
  }

  onGrowth(listener: (size: number) => void): () => void {
    return this.tail.onGrowth(listener);
  }

  async lag(): Promise<number> {
    return this.tail.listening() ? Math.max(0, (await this.head()).size - this.tail.delivered()) : 0;
  }

  rootAt(size: number): Promise<Uint8Array> {
    return this.proofs.rootAt(size);
  }

  async cosigned(): Promise<SignedCheckpoint | null> {
    await this.followedHead();
    return readCosignedCheckpoint(this.options.storage, this.options.logKeys.keys(), this.options.verify);
  }

  keepCosigned(note: string): Promise<void> {
    return this.options.storage.write((tx) => tx.putMeta(COSIGNED_CHECKPOINT, note));
  }

  async inclusion(index: number, under?: SignedCheckpoint): ReturnType<Ledger["inclusion"]> {
    const signed = under ?? (await this.checkpoint());
    if (index >= signed.size)
      throw new Refusal("INVALID_RANGE", `index ${index} is not below the ledger's size ${signed.size}`);
    const { size } = signed;
    const path = await this.proofs.inclusion(index, size);
    return { index, size, path, checkpoint: signed, log_keys: await this.logKeyProofs(signed) };
  }

  consistency(first: number, second: number): Promise<Uint8Array[]> {
    return this.proofs.consistency(first, second);
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await this.follower.stop();
    await this.sequencer.drain();
    await this.tail.settled();
    await this.checkpoints.close();
    await this.checkpointStore.close();
    await this.appended?.close();
    await this.historyAgreement?.leave();
    this.keptHead?.close();
    const unfinished = this.kept.filter((file) => file.isWriting()).map(({ path }) => path);
    if (this.appended?.isWriting() === true) unfinished.push(this.appended.path);
    if (unfinished.length > 0)
      throw new TimeLimitError(`the disk did not respond to the write of ${unfinished.join(" and ")}`);
  }
}

/** Returns the files outside the store in which this process stores the newest checkpoint. */
function keptCheckpoints(
  { keptCheckpoint, stateFolder, logKeys, log }: LedgerOptions,
  limitMs: number,
): CheckpointFile[] {
  const checkpointFiles: CheckpointFile[] = [];
  if (keptCheckpoint !== null) checkpointFiles.push(openCheckpointFile(keptCheckpoint, log, { limitMs }));
  // Also store a copy outside the data folder. Restoring the whole data folder restores the checkpoint in it too, so a
  // rollback would go unnoticed. The name of the copy depends on the log's first key, because one state folder serves
  // all logs.
  if (typeof stateFolder === "string")
    checkpointFiles.push(
      openCheckpointFile(stateCheckpointPath(stateFolder, logKeys.keys().first), log, { optional: true, limitMs }),
    );
  return checkpointFiles;
}
