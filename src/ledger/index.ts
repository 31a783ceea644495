/** Combines sequencer, proofs, checkpoints and tail into one object for the rest of the core and the plugins. */
import type { Vault } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { Ledger, SignedCheckpoint } from "../contract/ledger.ts";
import { Refusal } from "../contract/errors.ts";
import { StorageError, type LedgerHead, type Storage, type StoredHead } from "../contract/storage.ts";
import { currentVkey } from "../domain/log-keys.ts";
import { NO_STOPS } from "../domain/stops.ts";
import { NO_GRANTS } from "../domain/grants.ts";
import { NO_USERS } from "../domain/users.ts";
import { auditLedger } from "../audit/ledger.ts";
import { appendCheckpoints } from "./witness/appended-checkpoints.ts";
import type { BatchContext } from "./commit/batch.ts";
import { createCheckpoints, storedCheckpoint } from "./sign/checkpoints.ts";
import type { LedgerClock } from "./commit/clock.ts";
import { createContinuity } from "./commit/continuity.ts";
import { createProofReader } from "./reader.ts";
import { RollCall } from "./commit/roll-call.ts";
import { Sequencer, type SequencerOptions } from "./commit/sequencer.ts";
import { sharedRead } from "./shared-read.ts";
import { createTail } from "./tail.ts";
import {
  compareWithCheckpointFile,
  openCheckpointFile,
  stateCheckpointPath,
  type CheckpointFile,
} from "./sign/kept-checkpoint.ts";
import { proveLogKeys, viewLogKeys, type LogKeyBook } from "./sign/log-key-book.ts";
import { LedgerTampered } from "./tampered.ts";
import { witnessedCheckpoint } from "./witness/witnesses.ts";

/** Time after which a signature is stored by itself if no batch stores it earlier. Milliseconds. */
const STORE_CHECKPOINT_DELAY_MS = 200;
/** Interval at which the head is read, because an announcement of a commit can be lost. Milliseconds. */
const CATCH_UP_INTERVAL_MS = 500;
/** The same interval for stores that do not announce commits. */
const POLL_INTERVAL_MS = 250;
/** Minimum interval at which a process that only reads stores what it has seen. Milliseconds. */
const STORE_SEEN_INTERVAL_MS = 1000;

/** Default time limit for the jobs of a batch: longer than any batch on a slow disk or database takes. Milliseconds. */
const DEFAULT_JOB_TIMEOUT_MS = 60_000;

export interface LedgerOptions {
  storage: Storage;
  /** Identifies this process among those that share the store. */
  instance: string;
  verify: Vault["verify"];
  /** The log's keys, already read from the store. */
  logKeys: LogKeyBook;
  log: Logger;
  clock: LedgerClock;
  origin: string;
  maxBatch: number;
  /** Longest run of a batch's jobs, in milliseconds. Default 60,000. */
  jobMs?: number;
  verifyAtStart: number;
  /** File that keeps the newest checkpoint outside the store; null for none. */
  keptCheckpoint: string | null;
  /** A folder outside the data folder that keeps the newest checkpoints of all logs of this machine. Absent: none. */
  stateFolder?: string | null;
  /** A file that checkpoints are appended to. Absent: none. */
  checkpointLog?: { path: string; everyMs: number } | null;
  /** Accepts a store that is older than the kept checkpoint. */
  acceptRollback: boolean;
  policies: BatchContext["policies"];
  /** Absent: changes of keys and agents are not read. */
  follow?: SequencerOptions["follow"];
  confirm: BatchContext["confirm"];
  agentFacts: BatchContext["agentFacts"];
  /** Absent: there are no stops. */
  stops?: BatchContext["stops"];
  /** Absent: there are none. */
  users?: BatchContext["users"];
  /** Absent: there are none. */
  grants?: BatchContext["grants"];
  /** Absent: no one signs in. */
  confirmSession?: BatchContext["confirmSession"];
  outbox: BatchContext["outbox"];
  /** Absent: only the core records. */
  entryFault?: BatchContext["entryFault"];
}

export interface OpenLedger extends Ledger {
  halted(): string | null;
  /** Finishes all accepted jobs, and stores the last signature. */
  close(): Promise<void>;
}

/** Verifies the stored ledger, then accepts jobs. Rejects with LedgerTampered. */
export async function openLedger(options: LedgerOptions): Promise<OpenLedger> {
  const { storage, logKeys, origin, log } = options;
  const verify: Vault["verify"] = (...args) => options.verify(...args);
  const start = await storage.head();
  const continuity = createContinuity(start, storage);
  storage.onConnection?.((reader) => continuity.check(reader));
  const report = await auditLedger(storage, {
    from: Math.max(0, start.size - options.verifyAtStart),
    keys: () => logKeys.keys(),
    verify,
    allowUnsigned: options.acceptRollback,
  });
  if (report.faults.length > 0) throw new LedgerTampered(report.faults);

  const proofs = createProofReader(storage);
  const kept = keptCheckpoints(options);
  /** Timer of the write that stores the newest signature. */
  let timer: ReturnType<typeof setTimeout> | null = null;
  const checkpoints = createCheckpoints({
    origin,
    signers: (size) => logKeys.signers(size),
    proofs,
    start: await storedCheckpoint(storage, logKeys.keys(), verify),
    async keep(note) {
      for (const place of kept) await place.keep(note);
    },
    signed() {
      appended?.changed();
      planStore();
    },
    failed(error, size) {
      if (error instanceof StorageError && error.kind === "unavailable")
        return log.warn("the committed head could not be signed yet", { size, error: error.message });
      sequencer.halt(
        `the committed head (size ${size}) could not be signed: ${error instanceof Error ? error.message : String(error)}; nothing more is written: stop the service and run an audit`,
      );
    },
  });
  const rollCall =
    storage.processes === undefined
      ? null
      : new RollCall({
          storage: { write: (work) => storage.write(work), processes: storage.processes },
          instance: options.instance,
          newest() {
            const [seen, signed] = [continuity.seen(), checkpoints.latest()];
            return signed !== null && signed.size > seen.size ? signed : seen;
          },
          acceptRollback: options.acceptRollback,
          log,
        });
  for (const place of kept) {
    try {
      await compareWithCheckpointFile(place, {
        size: start.size,
        keys: logKeys.keys(),
        verify,
        rootAt: (size) => proofs.rootAt(size),
        acceptRollback: options.acceptRollback,
        log,
      });
    } catch (error) {
      // Report it to the other processes, so that those that have seen less do not continue with this database either.
      if (error instanceof LedgerTampered && error.seen !== null && start.server?.isSettled === false)
        await rollCall?.reportNewest(error.seen).catch(() => undefined);
      throw error;
    }
  }
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
  // The first batch stores this signature with its entries, so entries without a checkpoint show that it was removed.
  if (start.size === 0 && checkpoints.latest() === null) await checkpoints.sign(() => Promise.resolve(start));
  const last = start.size === 0 ? undefined : (await storage.entries(start.size - 1, start.size))[0];
  if (last !== undefined) options.clock.observeEntryTime(last.created_at);
  const tail = createTail(storage, start.size, log, (newest) => options.clock.observeEntryTime(newest.created_at));
  const readHead = sharedRead(() => continuity.observe(() => storage.head()));

  /** Stores the newest signature soon, unless a batch stores it earlier. */
  function planStore(): void {
    timer ??= setTimeout(() => void storeCheckpoint(), STORE_CHECKPOINT_DELAY_MS);
    timer.unref?.();
  }

  async function storeCheckpoint(): Promise<void> {
    timer = null;
    const waiting = checkpoints.unstored();
    // The signature of an empty log is stored with the first batch.
    if (waiting === null || waiting.size === 0) return;
    try {
      await storage.write(async (tx) => {
        if ((await tx.head()).server?.isSettled === false)
          throw new StorageError("unavailable", "the processes have not agreed on the database yet");
        await tx.putCheckpoint(waiting.size, waiting.note);
      });
      checkpoints.stored(waiting.size);
    } catch (error) {
      // It stays in memory, and the next batch stores it.
      log.warn("the newest checkpoint could not be stored yet", { size: waiting.size, error: String(error) });
    }
  }

  const batches = new Set<(lockedMs: number) => void>();
  const sequencer: Sequencer = new Sequencer(
    {
      storage,
      log,
      clock: options.clock,
      maxBatch: options.maxBatch,
      jobMs: options.jobMs ?? DEFAULT_JOB_TIMEOUT_MS,
      policies: options.policies,
      async follow(tx, before) {
        await options.follow?.(tx, before);
        await logKeys.follow(tx, before.epoch);
        logKeys.assertHeld();
      },
      confirm: options.confirm,
      agentFacts: options.agentFacts,
      stops: options.stops ?? (() => NO_STOPS),
      users: options.users ?? (() => NO_USERS),
      grants: options.grants ?? (() => NO_GRANTS),
      confirmSession: options.confirmSession ?? (() => Promise.reject(new Error("no one signs in here"))),
      outbox: options.outbox,
      entryFault: options.entryFault ?? (() => "no plugin declares it"),
      unstoredCheckpoint: () => checkpoints.unstored(),
      checkpointStored: (size) => checkpoints.stored(size),
      extendsHistory: (head) => checkpoints.extendsHistory(head),
      rootAt: (size) => proofs.rootAt(size),
      signed: () => checkpoints.latest(),
      seen: () => continuity.seen(),
      agree: () => rollCall?.awaitAgreement() ?? Promise.resolve(),
      committed(entries, head, base) {
        continuity.advance(head);
        logKeys.took(entries);
        tail.committed(entries);
        checkpoints.committed(head, base);
      },
      held: (lockedMs) => batches.forEach((listener) => listener(lockedMs)),
      idle: planStore,
    },
    start,
  );

  // Commits of other processes. The store announces them if it can, but the head is also read at intervals, because an
  // announcement can be lost. This also finds own commits whose outcome is unknown.
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
    // Usually the head of this process's own commit, which subscribers already know.
    if (size !== undefined && size <= tail.announced()) return;
    if (size === undefined || tail.listening()) catchUp();
    else tail.moved(size);
  }
  let keptAt = 0;
  /** Signs and keeps what other processes committed, because this process may be the only one that remembers it. */
  async function keepSeen(): Promise<void> {
    const signed = checkpoints.latest()?.size ?? 0;
    if (continuity.seen().size <= signed || performance.now() - keptAt < STORE_SEEN_INTERVAL_MS) return;
    keptAt = performance.now();
    await checkpoint();
  }
  let keeping: Promise<void> | null = null;
  async function keepNewest(): Promise<void> {
    try {
      await looking;
      await keepSeen();
    } catch (error) {
      log.debug("the newest checkpoint could not be kept", { error: String(error) });
    }
  }
  let polling: Promise<void> | null = null;
  /** Checks whether the database was replaced, and reads what other processes committed. */
  function poll(): void {
    if (rollCall === null) return catchUp();
    polling ??= rollCall
      .poll()
      .then(({ size }) => {
        if (size > tail.announced()) catchUp();
        // Not awaited, because these reads hang if the server does. The next poll finds out which server replaced it.
        keeping ??= keepNewest().finally(() => (keeping = null));
      })
      .catch((error: unknown) => log.debug("the database could not be looked at", { error: String(error) }))
      .finally(() => (polling = null));
  }
  const unwatch =
    storage.watch === undefined
      ? null
      : await storage.watch((size) => {
          changed(size);
          // The connection was lost, and may lead to another database now.
          if (size === undefined) poll();
        });
  const catching = setInterval(
    () => {
      if (!storage.exclusive || sequencer.lastHead() === null) poll();
    },
    storage.watch === undefined && !storage.exclusive ? POLL_INTERVAL_MS : CATCH_UP_INTERVAL_MS,
  );
  catching.unref?.();

  poll();

  async function head(): Promise<StoredHead> {
    const lastHead = sequencer.lastHead();
    return storage.exclusive && lastHead !== null ? lastHead : readHead();
  }

  const checkpoint = sharedRead(async (): Promise<SignedCheckpoint> => {
    const halted = sequencer.halted();
    if (halted !== null) throw new StorageError("corrupt", halted);
    return checkpoints.sign(followed);
  });

  /** Returns the head of a database that the processes agreed on, after reading the log's keys up to it. */
  async function followed(): Promise<LedgerHead> {
    let read = await head();
    if (read.server?.isSettled === false) {
      await rollCall?.awaitAgreement();
      read = await head();
      if (read.server?.isSettled === false)
        throw new StorageError("unavailable", "the processes have not agreed on the database yet");
    }
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
      // Announcements of other processes' entries were ignored while there were no subscribers.
      if (!storage.exclusive) catchUp();
      return stop;
    },
    onBatch(listener) {
      batches.add(listener);
      return () => void batches.delete(listener);
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
      await polling;
      await keeping;
      await sequencer.drain();
      await tail.settled();
      await checkpoints.close();
      if (timer !== null) clearTimeout(timer);
      await storeCheckpoint();
      await appended?.close();
      await rollCall?.leave();
    },
  };
}

/** Lists the places where this process keeps the newest checkpoint. */
function keptCheckpoints({ keptCheckpoint, stateFolder, logKeys, log }: LedgerOptions): CheckpointFile[] {
  const kept: CheckpointFile[] = [];
  if (keptCheckpoint !== null) kept.push(openCheckpointFile(keptCheckpoint, log));
  // A restore of the whole data folder also restores the checkpoint in it. Named after the log's first key, because one
  // folder serves all logs.
  if (typeof stateFolder === "string")
    kept.push(openCheckpointFile(stateCheckpointPath(stateFolder, logKeys.keys().first), log, { optional: true }));
  return kept;
}
