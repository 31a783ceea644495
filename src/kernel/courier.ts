/**
 * Delivers what the outbox holds: on one process at a time, one message after another for each destination, and
 * again with growing pauses until it went or three days are over. Nothing of a notifier reaches a decision: the
 * courier works from the store, beside the ledger.
 */
import type { Duty, Ledger, Logger } from "../contract/host.ts";
import { NotifierError, type Delivered, type Message, type Notifier } from "../contract/notifier.ts";
import type { DeliveryChange, DeliveryRow, Storage } from "../contract/storage.ts";
import { isObsolete, type MessageBuilder } from "./message.ts";

/** Milliseconds. */
const NAP = 2_000;
const AFTER_FAILURE = 2_000;
const FIRST_PAUSE = 5_000;
const LONGEST_PAUSE = 3_600_000;
const PRUNE_EVERY = 3_600_000;
const MAX_REFERENCE = 500;
const MAX_ERROR = 500;
/** Attempts at once. */
const AT_ONCE = 16;
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
  const busy = new Map<string, Promise<void>>();
  const stopping = new AbortController();
  let timer: ReturnType<typeof setTimeout> | null = null;
  let looking: Promise<void> | null = null;
  let again = false;
  let pruneAt = 0;
  let unsubscribe = (): void => {};

  function lookIn(ms: number): void {
    if (stopping.signal.aborted) return;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(look, Math.max(0, ms));
    timer.unref?.();
  }

  /** Now, or once more when the look that is going on is over. */
  function look(): void {
    if (stopping.signal.aborted) return;
    if (looking !== null) {
      again = true;
      return;
    }
    again = false;
    looking = round()
      .catch((error: unknown) => {
        log.warn("deliveries could not be looked at; trying again", { error: String(error) });
        return AFTER_FAILURE;
      })
      .then((nap) => {
        looking = null;
        if (again) look();
        else lookIn(nap);
      });
  }

  /** Begins what is due. Answers how long nothing needs to be looked at. */
  async function round(): Promise<number> {
    if (!(await options.duty.mine())) return NAP;
    const now = clock();
    if (now >= pruneAt) {
      pruneAt = now + PRUNE_EVERY;
      await ledger.submit((tx) => tx.pruneDeliveries(now - options.keepMs, 1000));
    }
    const next = await storage.nextDelivery();
    if (next === null) return NAP;
    if (next <= now) {
      await ledger.submit((tx) => tx.releaseDeliveries(tx.now));
      for (const row of await storage.dueDeliveries(now, AT_ONCE + busy.size)) {
        if (busy.size >= AT_ONCE) break;
        if (busy.has(row.destination)) continue;
        busy.set(row.destination, begin(row));
      }
    }
    // What is due and not begun waits for an attempt that is running, which looks again when it ends.
    return next <= now ? NAP : Math.min(next - now, NAP);
  }

  async function begin(row: DeliveryRow): Promise<void> {
    try {
      await attempt(row);
    } catch (error) {
      log.warn("a delivery could not be recorded; it is made again", { delivery: row.id, error: String(error) });
      await new Promise((resolve) => setTimeout(resolve, AFTER_FAILURE).unref?.() ?? resolve(undefined));
    } finally {
      busy.delete(row.destination);
      look();
    }
  }

  async function attempt(row: DeliveryRow): Promise<void> {
    const message = await options.messages.build(row);
    if (isObsolete(message)) return settle(row, { state: "obsolete", last_error: message.obsolete, updated_at: clock() });
    try {
      const { reference = null } = (await call(row.notifier, message)) ?? {};
      const kept = typeof reference === "string" ? reference.slice(0, MAX_REFERENCE) : null;
      await settle(row, { state: "delivered", attempts: row.attempts + 1, last_error: null, reference: kept, delivered_at: clock(), updated_at: clock() });
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      if (stopping.signal.aborted) return;
      await failed(row, error.cause);
    }
  }

  async function failed(row: DeliveryRow, cause: unknown): Promise<void> {
    const now = clock();
    const attempts = row.attempts + 1;
    const told = cause instanceof NotifierError ? cause : null;
    const next = now + Math.max(pauseAfter(attempts, options.random()), Math.min(told?.retryAfterMs ?? 0, LONGEST_PAUSE));
    const dead = told?.permanent === true || next > row.give_up_at;
    const last_error = messageOf(cause).slice(0, MAX_ERROR);
    log[dead ? "error" : "warn"](dead ? "a delivery was given up" : "a delivery failed; it is tried again", { delivery: row.id, destination: row.destination, kind: row.kind, attempts, error: last_error });
    await settle(row, { state: dead ? "dead" : "waiting", attempts, next_at: next, last_error, updated_at: now });
  }

  async function settle(row: DeliveryRow, change: DeliveryChange): Promise<void> {
    await ledger.submit((tx) => tx.updateDelivery(row.id, { state: row.state, attempts: row.attempts }, change));
  }

  /** One call, bounded in time whatever the notifier does. Throws Failed. */
  async function call(name: string, message: Message): Promise<Delivered | void> {
    const notifier = notifiers.get(name);
    if (notifier === undefined) throw new Failed(new Error(`no notifier "${name}" is configured`));
    if ((hanging.get(name) ?? 0) >= MAX_HANGING) throw new Failed(new Error(`${MAX_HANGING} earlier calls of the notifier "${name}" have not ended`));
    const over = AbortSignal.any([stopping.signal, AbortSignal.timeout(options.timeoutMs)]);
    const calling = invoke(notifier, message, over);
    let ended = false;
    const done = calling.then(
      () => void (ended = true),
      () => void (ended = true),
    );
    try {
      return await Promise.race([calling, aborted(over, options.timeoutMs)]);
    } catch (error) {
      throw new Failed(error);
    } finally {
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
      if (stopping.signal.aborted) return;
      stopping.abort(new Error("the service is stopping"));
      unsubscribe();
      if (timer !== null) clearTimeout(timer);
      await looking;
      await Promise.all(busy.values());
      await options.duty.release().catch(() => undefined);
    },
  };
}

/** A notifier's own failure, told apart from the store's. */
class Failed extends Error {
  constructor(cause: unknown) {
    super("the notifier failed", { cause });
  }
}

/** What throws before its first await rejects like anything else. */
async function invoke(notifier: Notifier, message: Message, signal: AbortSignal): Promise<Delivered | void> {
  return notifier.deliver(message, signal);
}

function aborted(signal: AbortSignal, timeoutMs: number): Promise<never> {
  return new Promise((_, reject) => {
    const fail = (): void => reject(signal.reason instanceof DOMException && signal.reason.name === "TimeoutError" ? new Error(`it gave no answer within ${timeoutMs / 1000} s`) : (signal.reason as Error));
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
