/** The ledger as the rest of the core and the plugins see it: sequencer, proofs, checkpoints and tail behind one object. */
import type { Ledger, Logger, SignedCheckpoint, Vault } from "../contract/host.ts";
import { Refusal } from "../contract/errors.ts";
import { StorageError, type LedgerHead, type Storage } from "../contract/storage.ts";
import { currentVkey } from "../domain/log-keys.ts";
import { NO_STOPS } from "../domain/stops.ts";
import { auditLedger } from "./audit.ts";
import { appendCheckpoints } from "./appended-checkpoints.ts";
import type { BatchContext } from "./batch.ts";
import { createCheckpoints, storedCheckpoint } from "./checkpoints.ts";
import type { LedgerClock } from "./clock.ts";
import { createContinuity } from "./continuity.ts";
import { createProofReader } from "./reader.ts";
import { createSequencer, type SequencerOptions } from "./sequencer.ts";
import { sharedRead } from "./shared-read.ts";
import { createTail } from "./tail.ts";
import { compareWithKept, keepCheckpoint, stateCheckpointPath, type KeptCheckpoint } from "./kept-checkpoint.ts";
import { proveLogKeys, viewLogKeys, type LogKeyBook } from "./log-key-book.ts";
import { LedgerTampered } from "./tampered.ts";
import { witnessedCheckpoint } from "./witnesses.ts";

/** How long a signature may wait for a batch to be stored with. Milliseconds. */
const STORE_CHECKPOINT_AFTER = 200;
/** How often the head is looked at where it may have moved without a word. Milliseconds. */
const CATCH_UP_EVERY = 2000;
/** The same where the store has no word at all. */
const LOOK_EVERY = 250;

/** Longer than any batch on a slow disk, or of a database that is slow to answer. Milliseconds. */
const LONGEST_JOBS = 60_000;

export interface LedgerOptions {
  storage: Storage;
  verify: Vault["verify"];
  /** Has followed the store. */
  logKeys: LogKeyBook;
  log: Logger;
  clock: LedgerClock;
  origin: string;
  maxBatch: number;
  /** Longest run of a batch's jobs, in milliseconds. Default 60,000. */
  jobMs?: number;
  verifyAtStart: number;
  /** File of the newest checkpoint, beside the store; null keeps none. */
  keptCheckpoint: string | null;
  /** A folder outside the data folder, where checkpoints of this machine's logs are kept too. Absent: none. */
  stateFolder?: string | null;
  /** A file that checkpoints are appended to. Absent: none. */
  checkpointLog?: { path: string; everyMs: number } | null;
  /** Goes on with a store that is older than the kept checkpoint. */
  acceptRollback: boolean;
  policies: BatchContext["policies"];
  /** Absent: nothing is. */
  follow?: SequencerOptions["follow"];
  confirm: BatchContext["confirm"];
  agentFacts: BatchContext["agentFacts"];
  /** Absent: none holds. */
  stops?: BatchContext["stops"];
  outbox: BatchContext["outbox"];
  /** Absent: only the core records. */
  entryFault?: BatchContext["entryFault"];
}

export interface OpenLedger extends Ledger {
  halted(): string | null;
  /** Answers everything taken, stores the last signature. */
  close(): Promise<void>;
}

/** Verifies the stored ledger, then takes jobs. Rejects with LedgerTampered. */
export async function openLedger(options: LedgerOptions): Promise<OpenLedger> {
  const { storage, logKeys, origin, log } = options;
  const verify: Vault["verify"] = (...args) => options.verify(...args);
  const start = await storage.head();
  const continuity = createContinuity(start);
  storage.onConnection?.((reader) => continuity.check(reader));
  const report = await auditLedger(storage, {
    from: Math.max(0, start.size - options.verifyAtStart),
    keys: () => logKeys.keys(),
    verify,
    allowUnsigned: options.acceptRollback,
  });
  if (report.faults.length > 0) throw new LedgerTampered(report.faults);

  const proofs = createProofReader(storage);
  const checkpoints = createCheckpoints(
    origin,
    (size) => logKeys.signers(size),
    proofs,
    await storedCheckpoint(storage, logKeys.keys(), verify),
  );
  // The first batch stores this signature with its entries: entries without a checkpoint show that it was removed.
  if (start.size === 0 && checkpoints.latest() === null) checkpoints.signNext(start);
  const newest = (): string | null => checkpoints.latest()?.note ?? null;
  const kept: KeptCheckpoint[] = [];
  if (options.keptCheckpoint !== null) kept.push(keepCheckpoint(options.keptCheckpoint, newest, log));
  // Whoever puts the whole data folder back puts the checkpoint in it back, too.
  if (typeof options.stateFolder === "string")
    kept.push(
      keepCheckpoint(stateCheckpointPath(options.stateFolder, logKeys.keys().first), newest, log, { optional: true }),
    );
  for (const place of kept)
    await compareWithKept(place, {
      size: start.size,
      keys: logKeys.keys(),
      verify,
      rootAt: (size) => proofs.rootAt(size),
      acceptRollback: options.acceptRollback,
      log,
    });
  const { checkpointLog } = options;
  const appended =
    checkpointLog == null
      ? null
      : appendCheckpoints(
          checkpointLog.path,
          checkpointLog.everyMs,
          () => checkpoints.latest(),
          options.clock.now,
          log,
        );
  const last = start.size === 0 ? undefined : (await storage.entries(start.size - 1, start.size))[0];
  if (last !== undefined) options.clock.saw(last.created_at);
  const tail = createTail(storage, start.size, log, (newest) => options.clock.saw(newest.created_at));
  const readHead = sharedRead(() => continuity.observe(() => storage.head()));
  let timer: ReturnType<typeof setTimeout> | null = null;

  async function storeCheckpoint(): Promise<void> {
    timer = null;
    const waiting = checkpoints.unstored();
    if (waiting === null) return;
    try {
      await storage.write((tx) => tx.putCheckpoint(waiting.size, waiting.note));
      checkpoints.stored(waiting.size);
    } catch (error) {
      // It is kept in memory and goes with the next batch.
      log.warn("the newest checkpoint could not be stored yet", { size: waiting.size, error: String(error) });
    }
  }

  const sequencer = createSequencer(
    {
      storage,
      log,
      clock: options.clock,
      maxBatch: options.maxBatch,
      jobMs: options.jobMs ?? LONGEST_JOBS,
      policies: options.policies,
      async follow(tx, before) {
        await options.follow?.(tx, before);
        await logKeys.follow(tx, before.epoch);
        logKeys.assertHeld();
      },
      confirm: options.confirm,
      agentFacts: options.agentFacts,
      stops: options.stops ?? (() => NO_STOPS),
      outbox: options.outbox,
      entryFault: options.entryFault ?? (() => "no plugin declares it"),
      unstoredCheckpoint: () => checkpoints.unstored(),
      checkpointStored: (size) => checkpoints.stored(size),
      extendsHistory: (head) => checkpoints.extendsHistory(head),
      rootAt: (size) => proofs.rootAt(size),
      signed: () => checkpoints.latest(),
      seen: () => continuity.seen(),
      committed(entries, head) {
        continuity.took(head);
        logKeys.took(entries);
        tail.committed(entries);
        const latest = checkpoints.latest();
        // Another process's later head may be signed already.
        if (latest === null || latest.size < head.size) checkpoints.signNext(head);
        for (const place of kept) place.changed();
        appended?.changed();
      },
      idle() {
        timer ??= setTimeout(() => void storeCheckpoint(), STORE_CHECKPOINT_AFTER);
        timer.unref?.();
      },
    },
    start,
  );

  // Commits of other processes: the store announces them where it can, and they are looked for as well, because an
  // announcement can be lost. So are this process's own whose outcome it does not know.
  let looking: Promise<void> | null = null;
  let again = false;
  function catchUp(): void {
    again = true;
    looking ??= (async () => {
      while (again) {
        again = false;
        try {
          await tail.reached((await readHead()).size);
        } catch (error) {
          log.warn("the ledger's head could not be read; subscribers wait", { error: String(error) });
        }
      }
      looking = null;
    })();
  }
  function changed(size?: number): void {
    // Mostly this process's own commit. A head that a request has read is no word to those who listen.
    if (size !== undefined && size <= tail.announced()) return;
    if (size === undefined || tail.listening()) catchUp();
    else tail.moved(size);
  }
  const unwatch = storage.watch === undefined ? null : await storage.watch(changed);
  const catching = setInterval(
    () => {
      if (!storage.exclusive || sequencer.lastHead() === null) catchUp();
    },
    storage.watch === undefined && !storage.exclusive ? LOOK_EVERY : CATCH_UP_EVERY,
  );
  catching.unref?.();

  async function head(): Promise<LedgerHead> {
    const lastHead = sequencer.lastHead();
    return storage.exclusive && lastHead !== null ? lastHead : readHead();
  }

  async function checkpoint(): Promise<SignedCheckpoint> {
    const halted = sequencer.halted();
    if (halted !== null) throw new StorageError("corrupt", halted);
    return checkpoints.sign(followed);
  }

  /** The head, with the log's keys as far as it goes. */
  async function followed(): Promise<LedgerHead> {
    const read = await head();
    await logKeys.follow(storage, read.epoch);
    return read;
  }

  return {
    get vkey() {
      return currentVkey(logKeys.keys());
    },
    async logKeys() {
      await followed();
      return viewLogKeys(logKeys.keys());
    },
    logKeyProofs: ({ size }) => proveLogKeys(logKeys.keys(), size, storage, proofs),
    origin,
    transact: (job, prefetch) => sequencer.transact(job, prefetch),
    transactFirst: (job) => sequencer.transactFirst(job),
    head,
    checkpoint,
    halted: () => sequencer.halted(),
    clockAhead: () => options.clock.ahead(),
    subscribe(listener) {
      const stop = tail.subscribe(listener, continuity.seen().size);
      // Words of others' entries were passed over while nobody listened.
      if (!storage.exclusive) catchUp();
      return stop;
    },
    onRecorded: (listener) => tail.onRecorded(listener),
    onGrowth: (listener) => tail.onGrowth(listener),
    lag: async () => (tail.listening() ? Math.max(0, (await head()).size - tail.delivered()) : 0),
    rootAt: (size) => proofs.rootAt(size),
    async witnessed() {
      await followed();
      return witnessedCheckpoint(storage, logKeys.keys(), verify);
    },
    async inclusion(index, under) {
      const signed = under ?? (await checkpoint());
      if (index >= signed.size)
        throw new Refusal("INVALID_RANGE", `index ${index} is not below the ledger's size ${signed.size}`);
      const { size } = signed;
      const path = await proofs.inclusion(index, size);
      return {
        index,
        size,
        path,
        checkpoint: signed,
        log_keys: await proveLogKeys(logKeys.keys(), size, storage, proofs),
      };
    },
    consistency: (first, second) => proofs.consistency(first, second),
    async close() {
      clearInterval(catching);
      await unwatch?.();
      await looking;
      await sequencer.drain();
      await tail.settled();
      if (timer !== null) clearTimeout(timer);
      await storeCheckpoint();
      for (const place of kept) await place.close();
      await appended?.close();
    },
  };
}
