/**
 * Delivers the messages of the outbox. Runs on one process at a time, and sends one message at a time to each
 * destination. Of the due messages of a destination, sends new messages before retries, and the message that expires
 * first before the others. Retries a message with increasing delays until it is delivered, it has expired, or three
 * days have passed. The courier calls notifiers outside the ledger's transactions, so a notifier cannot delay a
 * decision.
 */
import { type Logger, type Message, type Notifier, NotifierError } from "../../../src/plugin.ts";
import type { LeaderLease, CoreHost, LedgerTransaction, RowSeals } from "../../../src/core.ts";
import { type DeliveryChange, type DeliveryRow, StorageError, type StorageReader } from "../../../src/storage/index.ts";
import { readDeliveryReference, shortErrorText } from "./notifier-result.ts";
import { NotifierCallFailure, createNotifierCalls } from "./notifier-calls.ts";
import { createCircuitBreaker, type ClosedDestination, MAX_PROBE_PAUSE_MS } from "./destinations.ts";
import { collectDigest } from "./digest.ts";
import { isObsolete, expiresWithAction, type MessageBuilder, type ObsoleteMessage } from "./message.ts";

const POLL_MS = 2_000;
const RETRY_AFTER_ERROR_MS = 2_000;
const FIRST_RETRY_MS = 5_000;
const MAX_RETRY_MS = 3_600_000;
const PRUNE_INTERVAL_MS = 3_600_000;
const RELEASE_INTERVAL_MS = 1_000;
/** Maximum concurrent attempts of one notifier, so that a slow notifier does not delay the others. */
const MAX_CONCURRENT = 16;
/** Maximum number of due deliveries that one pass reads. */
const ROUND_SIZE = 1000;
/** Maximum number of deliveries that one transaction removes. */
const PRUNE_SIZE = 1000;

export interface CourierOptions {
  storage: Pick<StorageReader, "deliveries" | "dueDeliveries" | "nextScheduledDelivery">;
  ledger: CoreHost["ledger"];
  seals: RowSeals;
  notifiers: readonly Notifier[];
  lease: LeaderLease;
  log: Logger;
  clock(): number;
  messages: MessageBuilder;
  /** Timeout of one attempt, in milliseconds. */
  timeoutMs: number;
  /** Retention period of finished deliveries. Milliseconds. */
  keepMs: number;
  /** Names of the channels with `digest`. Default: none. */
  digests?: ReadonlySet<string>;
  /** Returns a number from 0 (inclusive) to 1 (exclusive), which spreads the retries. */
  random(): number;
}

export interface Courier {
  start(): void;
  /** Aborts running attempts; the next courier repeats them. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Returns the delay before the next attempt in milliseconds. It starts at 5 seconds and doubles up to `max`, plus or
 * minus a quarter.
 */
export function computeRetryDelay(attempts: number, random: number, max: number = MAX_RETRY_MS): number {
  const delay = Math.min(FIRST_RETRY_MS * 2 ** Math.min(attempts - 1, 30), max);
  return Math.round(delay * (0.75 + random / 2));
}

export function createCourier(options: CourierOptions): Courier {
  return new StoreCourier(options);
}

class StoreCourier implements Courier {
  private readonly options: CourierOptions;
  private readonly calls;
  private readonly destinations = createCircuitBreaker();
  /** Running attempts, keyed by destination. */
  private readonly attempts = new Map<string, { notifier: string; done: Promise<void> }>();
  /** Functions that each end one pause early. Called when the service stops. */
  private readonly pauseEnders = new Set<() => void>();
  private stopping = false;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private round: Promise<void> | null = null;
  /** Whether another pass was requested during the current one. */
  private needsRound = false;
  private pruneAt = 0;
  private releasedAt = -Infinity;
  private unsubscribe = (): void => {};

  constructor(options: CourierOptions) {
    this.options = options;
    this.calls = createNotifierCalls(options.notifiers, options.timeoutMs);
  }

  start(): void {
    this.unsubscribe = this.options.ledger.onGrowth(() => this.requestRound());
    this.requestRound();
  }

  async stop(): Promise<void> {
    if (this.stopping) return;
    this.stopping = true;
    for (const end of this.pauseEnders) end();
    this.calls.stop();
    this.unsubscribe();
    if (this.timer !== null) clearTimeout(this.timer);
    await this.round;
    await Promise.all([...this.attempts.values()].map(({ done }) => done));
    await this.options.lease.release().catch(() => undefined);
  }

  /** Starts a pass now, or after the current one. */
  private requestRound(): void {
    if (this.stopping) return;
    if (this.round !== null) {
      this.needsRound = true;
      return;
    }
    this.needsRound = false;
    this.round = this.runRound()
      .catch((error: unknown) => {
        this.options.log.warn("deliveries could not be read; trying again", { error: shortErrorText(error) });
        return RETRY_AFTER_ERROR_MS;
      })
      .then((delayMs) => {
        this.round = null;
        if (this.needsRound) this.requestRound();
        else this.scheduleRound(delayMs);
      });
  }

  private scheduleRound(delayMs: number): void {
    if (this.stopping) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => this.requestRound(), Math.max(0, delayMs));
    this.timer.unref?.();
  }

  /** Starts the attempts that are due. Resolves to the delay before the next round, in milliseconds. */
  private async runRound(): Promise<number> {
    const { storage, ledger, lease } = this.options;
    if (!(await lease.isLeader())) {
      this.destinations.clear();
      return POLL_MS;
    }
    const now = this.options.clock();
    await this.prune(now);
    const next = await storage.nextScheduledDelivery();
    // Limit the rate, because releasing deliveries writes to the store, and every commit during an attempt starts a
    // round.
    if (next !== null && next <= now && Math.abs(now - this.releasedAt) >= RELEASE_INTERVAL_MS) {
      await ledger.transact((tx) => tx.releaseDeliveries(tx.now));
      this.releasedAt = now;
    }
    // An attempt can end during this read, so a row for its destination may be out of date. The end of the attempt
    // requests another pass.
    const busy = new Set(this.attempts.keys());
    for (const row of await storage.dueDeliveries(now, ROUND_SIZE)) {
      if (busy.has(row.destination) || this.attemptsOf(row.notifier) >= MAX_CONCURRENT) continue;
      const closed = this.destinations.closureOf(row.destination, now);
      if (closed !== null && isUntried(row)) await ledger.transact((tx) => defer(tx, row.destination, closed, ""));
      else {
        busy.add(row.destination);
        this.attempts.set(row.destination, { notifier: row.notifier, done: this.run(row) });
      }
    }
    // Due deliveries that this pass did not start wait for a running attempt, which requests another pass when it ends.
    return next === null || next <= now ? POLL_MS : Math.min(next - now, POLL_MS);
  }

  private async prune(now: number): Promise<void> {
    // If the clock was set back, the second condition prevents a wait until the clock has caught up.
    if (now < this.pruneAt && this.pruneAt - now <= PRUNE_INTERVAL_MS) return;
    const removed = await this.options.ledger.transact((tx) =>
      tx.pruneDeliveries(now - this.options.keepMs, PRUNE_SIZE),
    );
    this.pruneAt = removed < PRUNE_SIZE ? now + PRUNE_INTERVAL_MS : now;
  }

  private attemptsOf(notifier: string): number {
    let count = 0;
    for (const attempt of this.attempts.values()) if (attempt.notifier === notifier) count++;
    return count;
  }

  private async run(row: DeliveryRow): Promise<void> {
    try {
      await this.attempt(row);
    } catch (error) {
      if (!this.stopping)
        this.options.log.warn("the result of a delivery could not be stored; the delivery is repeated", {
          delivery: row.id,
          error: shortErrorText(error),
        });
      await this.pause(RETRY_AFTER_ERROR_MS);
    } finally {
      this.attempts.delete(row.destination);
      this.requestRound();
    }
  }

  /** Resolves after the time has passed, or as soon as the service stops. */
  private async pause(ms: number): Promise<void> {
    if (this.stopping) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.pauseEnders.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.pauseEnders.add(end);
    });
  }

  private async attempt(row: DeliveryRow): Promise<void> {
    const { clock, storage, seals, digests: channels = new Set() } = this.options;
    const built = await this.build(row);
    if (built instanceof Error) return this.recordFailure(row, built, false);
    if (isObsolete(built))
      return this.settle(row, { state: "obsolete", last_error: built.obsoleteReason, updated_at: clock() });
    const build = async (other: DeliveryRow): Promise<Message | ObsoleteMessage | null> => {
      const result = await this.build(other);
      return result instanceof Error ? null : result;
    };
    const { message, others } = await collectDigest({ storage, channels, build, now: clock() }, row, built);
    try {
      const answer = readDeliveryReference(await this.calls.call(row.notifier, message));
      // For several requests, store no reference: the outcome of one request must not replace the message about all of
      // them.
      const reference = others.length === 0 ? answer : null;
      const hasten = this.destinations.recordSuccess(row.destination);
      const delivered = (sent: DeliveryRow): DeliveryChange => ({
        state: "delivered",
        attempts: sent.attempts + 1,
        last_error: null,
        reference,
        delivered_at: clock(),
        updated_at: clock(),
        seal: seals.seal("deliveries", { ...sent, reference }),
      });
      await this.settle(row, delivered(row), async (tx) => {
        for (const other of others)
          await tx.updateDelivery(other.id, { state: other.state, attempts: other.attempts }, delivered(other));
        if (hasten !== null) await tx.hastenDeliveries(row.destination, hasten.attempts, tx.now);
      });
    } catch (error) {
      if (!(error instanceof NotifierCallFailure)) throw error;
      if (!this.stopping) await this.recordFailure(row, error.cause, true);
    }
  }

  /**
   * Builds the message of a delivery. Returns an error if the row itself is faulty. Such a delivery must fail, so that
   * it does not block later messages.
   */
  private async build(row: DeliveryRow): Promise<Message | ObsoleteMessage | Error> {
    try {
      return await this.options.messages.build(row);
    } catch (error) {
      if (error instanceof StorageError && error.kind !== "corrupt" && error.kind !== "invalid") throw error;
      this.options.log.error("a message could not be built", {
        delivery: row.id,
        kind: row.kind,
        error: shortErrorText(error),
      });
      return error instanceof NotifierError
        ? error
        : new Error("the message could not be built; see the log of the service");
    }
  }

  /**
   * @param sent whether the notifier was called. If it was, the destination may be down, so its other messages wait too
   */
  private async recordFailure(row: DeliveryRow, cause: unknown, sent: boolean): Promise<void> {
    const now = this.options.clock();
    const attempts = row.attempts + 1;
    const notifierError = cause instanceof NotifierError ? cause : null;
    // A notifier can return any number, but the store accepts neither NaN nor fractions.
    const retryAfterMs = Math.min(Math.ceil(notifierError?.retryAfterMs ?? 0) || 0, MAX_RETRY_MS);
    const delay = (failures: number, max: number): number =>
      Math.max(computeRetryDelay(failures, this.options.random(), max), retryAfterMs);
    const next = now + delay(attempts, expiresWithAction(row) ? MAX_PROBE_PAUSE_MS : MAX_RETRY_MS);
    const permanent = notifierError?.permanent === true;
    const dead = permanent || next > row.give_up_at;
    const last_error = shortErrorText(cause);
    this.options.log[dead ? "error" : "warn"](
      dead ? "a delivery failed permanently" : "a delivery failed and will be retried",
      { delivery: row.id, destination: row.destination, kind: row.kind, attempts, error: last_error },
    );
    let closed: ClosedDestination | null = null;
    if (sent && !permanent) {
      const until = now + delay(this.destinations.recordFailure(row.destination), MAX_PROBE_PAUSE_MS);
      // Events must arrive in order, so later events must not overtake this one.
      const events = row.kind === "event" && !dead ? next : until;
      closed = { until, events_until: events, last_error: shortErrorText(`its destination failed: ${last_error}`) };
      this.destinations.close(row.destination, closed);
    }
    const change = { state: dead ? "dead" : "waiting", attempts, next_at: next, last_error, updated_at: now } as const;
    await this.settle(row, change, async (tx) => {
      if (closed !== null) await defer(tx, row.destination, closed, row.id);
    });
  }

  /** Stores the result of an attempt. `andThen` runs in the same transaction. */
  private async settle(
    row: DeliveryRow,
    change: DeliveryChange,
    andThen?: (tx: LedgerTransaction) => Promise<void>,
  ): Promise<void> {
    await this.options.ledger.transact(async (tx) => {
      await tx.updateDelivery(row.id, { state: row.state, attempts: row.attempts }, change);
      await andThen?.(tx);
    });
  }
}

/** Postpones all messages of a closed destination except one. */
async function defer(
  tx: LedgerTransaction,
  destination: string,
  { until, events_until: events, last_error }: ClosedDestination,
  except: string,
): Promise<void> {
  await tx.deferDeliveries(destination, { except, events, others: until, last_error, updated_at: tx.now });
}

/** Returns true if the delivery was neither attempted nor deferred. */
function isUntried({ attempts, last_error }: DeliveryRow): boolean {
  return attempts === 0 && last_error === null;
}
