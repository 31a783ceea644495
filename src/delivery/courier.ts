/**
 * Delivers what the outbox holds: on one process at a time, one message after another for each destination, and
 * again with growing pauses until it went or three days are over. Nothing of a notifier reaches a decision: the
 * courier works from the store, beside the ledger.
 */
import type { Duty, Ledger, Logger } from "../contract/host.ts";
import { NotifierError, type Delivered, type Message, type Notifier } from "../contract/notifier.ts";
import { StorageError, type DeliveryChange, type DeliveryRow, type Storage } from "../contract/storage.ts";
import { referenceOf, textOf } from "./notifier-answer.ts";
import { asNotifier } from "./notifier-errors.ts";
import { isObsolete, type MessageBuilder, type Obsolete } from "./message.ts";

/** Milliseconds. */
const NAP = 2_000;
const AFTER_FAILURE = 2_000;
const FIRST_PAUSE = 5_000;
const LONGEST_PAUSE = 3_600_000;
const PRUNE_EVERY = 3_600_000;
const RELEASE_EVERY = 1_000;
/** Attempts of one notifier at once: one that is slow with everybody holds up no other. */
const AT_ONCE = 16;
/** Destinations that are looked at. */
const LOOK = 1000;
/** Deliveries removed in one transaction. */
const SWEEP = 1000;
/** Calls of one notifier that were given up and have not ended: more are not begun. */
const MAX_HANGING = 20;

export interface CourierOptions {
  storage: Storage;
  ledger: Ledger;
  notifiers: readonly Notifier[];
  duty: Duty;
  log: Logger;
  clock(): number;
  messages: MessageBuilder;
  /** Of one attempt. Milliseconds. */
  timeoutMs: number;
  /** How long deliveries that are over are kept. Milliseconds. */
  keepMs: number;
  /** From 0 to below 1: spreads the pauses. */
  random(): number;
}

export interface Courier {
  start(): void;
  /** Ends running attempts; they are made again. Idempotent. */
  stop(): Promise<void>;
}

/** Before the next attempt: doubling from 5 seconds to an hour, up to a quarter more or less. Milliseconds. */
export function pauseAfter(attempts: number, random: number): number {
  const pause = Math.min(FIRST_PAUSE * 2 ** Math.min(attempts - 1, 30), LONGEST_PAUSE);
  return Math.round(pause * (0.75 + random / 2));
}

export function createCourier(options: CourierOptions): Courier {
  const { storage, ledger, log, clock } = options;
  const notifiers = new Map(options.notifiers.map((notifier) => [notifier.name, notifier]));
  const hanging = new Map<string, number>();
  /** By destination. */
  const busy = new Map<string, { notifier: string; done: Promise<void> }>();
  /** What ends whatever waits, when the service stops. */
  const enders = new Set<() => void>();
  let stopping = false;
  let timer: ReturnType<typeof setTimeout> | null = null;
  let looking: Promise<void> | null = null;
  let again = false;
  let pruneAt = 0;
  let releasedAt = -Infinity;
  let unsubscribe = (): void => {};

  function lookIn(ms: number): void {
    if (stopping) return;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(look, Math.max(0, ms));
    timer.unref?.();
  }

  /** Now, or once more when the look that is going on is over. */
  function look(): void {
    if (stopping) return;
    if (looking !== null) {
      again = true;
      return;
    }
    again = false;
    looking = round()
      .catch((error: unknown) => {
        log.warn("deliveries could not be looked at; trying again", { error: textOf(error) });
        return AFTER_FAILURE;
      })
      .then((nap) => {
        looking = null;
        if (again) look();
        else lookIn(nap);
      });
  }

  /** Begins what is due. Returns how long nothing needs to be looked at. */
  async function round(): Promise<number> {
    if (!(await options.duty.mine())) return NAP;
    const now = clock();
    // A clock that was set back must not put it off for long.
    if (now >= pruneAt || pruneAt - now > PRUNE_EVERY) {
      const removed = await ledger.transact((tx) => tx.pruneDeliveries(now - options.keepMs, SWEEP));
      pruneAt = removed < SWEEP ? now + PRUNE_EVERY : now;
    }
    const next = await storage.nextDelivery();
    if (next === null) return NAP;
    if (next <= now) {
      // This writes, so it is not done at each look: every commit brings one while an attempt is under way.
      if (Math.abs(now - releasedAt) >= RELEASE_EVERY) {
        await ledger.transact((tx) => tx.releaseDeliveries(tx.now));
        releasedAt = now;
      }
      for (const row of await storage.dueDeliveries(now, LOOK)) {
        if (busy.has(row.destination) || underWay(row.notifier) >= AT_ONCE) continue;
        busy.set(row.destination, { notifier: row.notifier, done: begin(row) });
      }
    }
    // What is due and not begun waits for an attempt that is running, which looks again when it ends.
    return next <= now ? NAP : Math.min(next - now, NAP);
  }

  /** Ends early when the service stops. */
  async function pause(ms: number): Promise<void> {
    if (stopping) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        enders.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      enders.add(end);
    });
  }

  function underWay(notifier: string): number {
    let count = 0;
    for (const one of busy.values()) if (one.notifier === notifier) count++;
    return count;
  }

  async function begin(row: DeliveryRow): Promise<void> {
    try {
      await attempt(row);
    } catch (error) {
      if (!stopping)
        log.warn("a delivery could not be recorded; it is made again", { delivery: row.id, error: textOf(error) });
      await pause(AFTER_FAILURE);
    } finally {
      busy.delete(row.destination);
      look();
    }
  }

  async function attempt(row: DeliveryRow): Promise<void> {
    const message = await build(row);
    if (message === null) return failed(row, new Error("the message could not be made; the log says why"));
    if (isObsolete(message))
      return settle(row, { state: "obsolete", last_error: message.obsolete, updated_at: clock() });
    try {
      const reference = referenceOf(await call(row.notifier, message));
      await settle(row, {
        state: "delivered",
        attempts: row.attempts + 1,
        last_error: null,
        reference,
        delivered_at: clock(),
        updated_at: clock(),
      });
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      if (stopping) return;
      await failed(row, error.cause);
    }
  }

  /** Null where this row is at fault: it must not be looked at forever and hold up those behind it. */
  async function build(row: DeliveryRow): Promise<Message | Obsolete | null> {
    try {
      return await options.messages.build(row);
    } catch (error) {
      if (error instanceof StorageError && error.kind !== "corrupt" && error.kind !== "invalid") throw error;
      log.error("a message could not be made", { delivery: row.id, kind: row.kind, error: textOf(error) });
      return null;
    }
  }

  async function failed(row: DeliveryRow, cause: unknown): Promise<void> {
    const now = clock();
    const attempts = row.attempts + 1;
    const notifierError = cause instanceof NotifierError ? cause : null;
    // Whatever a notifier calls a number: NaN and fractions have no place in the store.
    const wished = Math.min(Math.ceil(notifierError?.retryAfterMs ?? 0) || 0, LONGEST_PAUSE);
    const next = now + Math.max(pauseAfter(attempts, options.random()), wished);
    const dead = notifierError?.permanent === true || next > row.give_up_at;
    const last_error = textOf(cause);
    log[dead ? "error" : "warn"](dead ? "a delivery was given up" : "a delivery failed; it is tried again", {
      delivery: row.id,
      destination: row.destination,
      kind: row.kind,
      attempts,
      error: last_error,
    });
    await settle(row, { state: dead ? "dead" : "waiting", attempts, next_at: next, last_error, updated_at: now });
  }

  async function settle(row: DeliveryRow, change: DeliveryChange): Promise<void> {
    await ledger.transact((tx) => tx.updateDelivery(row.id, { state: row.state, attempts: row.attempts }, change));
  }

  /** One call, bounded in time whatever the notifier does. Throws Failed. */
  async function call(name: string, message: Message): Promise<Delivered | void> {
    const notifier = notifiers.get(name);
    if (notifier === undefined) throw new Failed(new Error(`no notifier "${name}" is configured`));
    if ((hanging.get(name) ?? 0) >= MAX_HANGING)
      throw new Failed(new Error(`${MAX_HANGING} earlier calls of the notifier "${name}" have not ended`));
    if (stopping) throw new Failed(STOPPING);
    // Not AbortSignal.any() over AbortSignal.timeout(): Node 20 collects those as garbage, and then nothing ends the call.
    const over = new AbortController();
    const end = (): void => over.abort(STOPPING);
    const timer = setTimeout(
      () => over.abort(new Error(`it gave no answer within ${options.timeoutMs / 1000} s`)),
      options.timeoutMs,
    );
    enders.add(end);
    const calling = invoke(notifier, message, over.signal);
    let ended = false;
    const done = calling.then(
      () => void (ended = true),
      () => void (ended = true),
    );
    try {
      return await Promise.race([calling, aborted(over.signal)]);
    } catch (error) {
      throw new Failed(error);
    } finally {
      clearTimeout(timer);
      enders.delete(end);
      if (!ended) {
        hanging.set(name, (hanging.get(name) ?? 0) + 1);
        void done.then(() => hanging.set(name, (hanging.get(name) ?? 1) - 1));
      }
    }
  }

  return {
    start() {
      unsubscribe = ledger.subscribe(() => look());
      look();
    },
    async stop() {
      if (stopping) return;
      stopping = true;
      for (const end of enders) end();
      unsubscribe();
      if (timer !== null) clearTimeout(timer);
      await looking;
      await Promise.all([...busy.values()].map(({ done }) => done));
      await options.duty.release().catch(() => undefined);
    },
  };
}

const STOPPING = new Error("the service is stopping");

/** A notifier's own failure, told apart from the store's. */
class Failed extends Error {
  constructor(cause: unknown) {
    super("the notifier failed", { cause });
  }
}

/** What throws before its first await rejects like anything else. */
async function invoke(notifier: Notifier, message: Message, signal: AbortSignal): Promise<Delivered | void> {
  return asNotifier(notifier.name, () => notifier.deliver(message, signal));
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
  );
}
