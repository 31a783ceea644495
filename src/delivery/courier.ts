/**
 * Delivers what the outbox holds: on one process at a time, one message after another for each destination, that which
 * runs out first, and again with growing pauses until it went, ran out, or three days are over. Nothing of a notifier
 * reaches a decision: the courier works from the store, beside the ledger.
 */
import type { LeaderLease } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import type { Ledger, LedgerTransaction } from "../contract/ledger.ts";
import { NotifierError, type Message, type Notifier } from "../contract/notifier.ts";
import { StorageError, type DeliveryChange, type DeliveryRow, type Storage } from "../contract/storage.ts";
import { readReference, errorText } from "./notifier-answer.ts";
import { NotifierCallFailure, createNotifierCalls } from "./notifier-calls.ts";
import { createDestinations, type ClosedDestination, MAX_PROBE_PAUSE_MS } from "./destinations.ts";
import { isObsolete, expiresWithAction, type MessageBuilder, type ObsoleteMessage } from "./message.ts";

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
export interface CourierOptions {
  storage: Storage;
  ledger: Ledger;
  notifiers: readonly Notifier[];
  duty: LeaderLease;
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

/** Before the next attempt: doubling from 5 seconds to `longest`, up to a quarter more or less. Milliseconds. */
export function retryDelay(attempts: number, random: number, longest: number = LONGEST_PAUSE): number {
  const pause = Math.min(FIRST_PAUSE * 2 ** Math.min(attempts - 1, 30), longest);
  return Math.round(pause * (0.75 + random / 2));
}

export function createCourier(options: CourierOptions): Courier {
  const { storage, ledger, log, clock } = options;
  const calls = createNotifierCalls(options.notifiers, options.timeoutMs);
  const destinations = createDestinations();
  /** By destination. */
  const busy = new Map<string, { notifier: string; done: Promise<void> }>();
  /** What ends the pauses when the service stops. */
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
        log.warn("deliveries could not be looked at; trying again", { error: errorText(error) });
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
    if (!(await options.duty.isLeader())) {
      destinations.clear();
      return NAP;
    }
    const now = clock();
    // A clock that was set back must not put it off for long.
    if (now >= pruneAt || pruneAt - now > PRUNE_EVERY) {
      const removed = await ledger.transact((tx) => tx.pruneDeliveries(now - options.keepMs, SWEEP));
      pruneAt = removed < SWEEP ? now + PRUNE_EVERY : now;
    }
    const next = await storage.nextScheduledDelivery();
    // This writes, so it is not done at each look: every commit brings one while an attempt is under way.
    if (next !== null && next <= now && Math.abs(now - releasedAt) >= RELEASE_EVERY) {
      await ledger.transact((tx) => tx.releaseDeliveries(tx.now));
      releasedAt = now;
    }
    for (const row of await storage.dueDeliveries(now, LOOK)) {
      if (busy.has(row.destination) || underWay(row.notifier) >= AT_ONCE) continue;
      const closed = destinations.closureOf(row.destination, now);
      if (closed !== null && isFresh(row)) await ledger.transact((tx) => defer(tx, row.destination, closed, ""));
      else busy.set(row.destination, { notifier: row.notifier, done: begin(row) });
    }
    // What is due and not begun waits for an attempt that is running, which looks again when it ends.
    return next === null || next <= now ? NAP : Math.min(next - now, NAP);
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
        log.warn("a delivery could not be recorded; it is made again", { delivery: row.id, error: errorText(error) });
      await pause(AFTER_FAILURE);
    } finally {
      busy.delete(row.destination);
      look();
    }
  }

  async function attempt(row: DeliveryRow): Promise<void> {
    const message = await build(row);
    if (message === null) return failed(row, new Error("the message could not be made; the log says why"), false);
    if (isObsolete(message))
      return settle(row, { state: "obsolete", last_error: message.obsoleteReason, updated_at: clock() });
    try {
      const reference = readReference(await calls.call(row.notifier, message));
      const hasten = destinations.recordSuccess(row.destination);
      await settle(
        row,
        {
          state: "delivered",
          attempts: row.attempts + 1,
          last_error: null,
          reference,
          delivered_at: clock(),
          updated_at: clock(),
        },
        async (tx) => void (hasten === null || (await tx.hastenDeliveries(row.destination, hasten.attempts, tx.now))),
      );
    } catch (error) {
      if (!(error instanceof NotifierCallFailure)) throw error;
      if (!stopping) await failed(row, error.cause, true);
    }
  }

  /** Null where this row is at fault: it must not be looked at forever and hold up those behind it. */
  async function build(row: DeliveryRow): Promise<Message | ObsoleteMessage | null> {
    try {
      return await options.messages.build(row);
    } catch (error) {
      if (error instanceof StorageError && error.kind !== "corrupt" && error.kind !== "invalid") throw error;
      log.error("a message could not be made", { delivery: row.id, kind: row.kind, error: errorText(error) });
      return null;
    }
  }

  /** @param there the destination may be to blame: then what waits for it waits for the next probe */
  async function failed(row: DeliveryRow, cause: unknown, there: boolean): Promise<void> {
    const now = clock();
    const attempts = row.attempts + 1;
    const notifierError = cause instanceof NotifierError ? cause : null;
    // Whatever a notifier calls a number: NaN and fractions have no place in the store.
    const wished = Math.min(Math.ceil(notifierError?.retryAfterMs ?? 0) || 0, LONGEST_PAUSE);
    const pause = (times: number, longest: number): number =>
      Math.max(retryDelay(times, options.random(), longest), wished);
    const next = now + pause(attempts, expiresWithAction(row) ? MAX_PROBE_PAUSE_MS : LONGEST_PAUSE);
    const permanent = notifierError?.permanent === true;
    const dead = permanent || next > row.give_up_at;
    const last_error = errorText(cause);
    log[dead ? "error" : "warn"](dead ? "a delivery was given up" : "a delivery failed; it is tried again", {
      delivery: row.id,
      destination: row.destination,
      kind: row.kind,
      attempts,
      error: last_error,
    });
    let closed: ClosedDestination | null = null;
    if (there && !permanent) {
      const until = now + pause(destinations.recordFailure(row.destination), MAX_PROBE_PAUSE_MS);
      // None of them may go before this one.
      const events = row.kind === "event" && !dead ? next : until;
      closed = { until, events, last_error: errorText(`its destination failed: ${last_error}`) };
      destinations.close(row.destination, closed);
    }
    const change = { state: dead ? "dead" : "waiting", attempts, next_at: next, last_error, updated_at: now } as const;
    await settle(row, change, async (tx) => {
      if (closed !== null) await defer(tx, row.destination, closed, row.id);
    });
  }

  /** `more` is done with it, or neither. */
  async function settle(
    row: DeliveryRow,
    change: DeliveryChange,
    more?: (tx: LedgerTransaction) => Promise<void>,
  ): Promise<void> {
    await ledger.transact(async (tx) => {
      await tx.updateDelivery(row.id, { state: row.state, attempts: row.attempts }, change);
      await more?.(tx);
    });
  }

  return {
    start() {
      unsubscribe = ledger.onGrowth(() => look());
      look();
    },
    async stop() {
      if (stopping) return;
      stopping = true;
      for (const end of enders) end();
      calls.stop();
      unsubscribe();
      if (timer !== null) clearTimeout(timer);
      await looking;
      await Promise.all([...busy.values()].map(({ done }) => done));
      await options.duty.release().catch(() => undefined);
    },
  };
}

async function defer(
  tx: LedgerTransaction,
  destination: string,
  { until, events, last_error }: ClosedDestination,
  except: string,
): Promise<void> {
  await tx.deferDeliveries(destination, { except, events, others: until, last_error, updated_at: tx.now });
}

/** Nobody has tried it, nor found its destination closed, nor asked for a retry. */
function isFresh({ attempts, last_error }: DeliveryRow): boolean {
  return attempts === 0 && last_error === null;
}
