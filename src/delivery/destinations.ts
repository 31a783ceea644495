/**
 * A circuit breaker for destinations. While a destination fails, one message at a time is sent to it as a probe, and its
 * other messages wait. When a probe succeeds, all of them are sent.
 *
 * The state is only in memory: after a restart each destination is probed once.
 */
/** Maximum time between probes for messages that expire, plus or minus a quarter. Milliseconds. */
export const MAX_PROBE_PAUSE_MS = 60_000;

/** The times until which the messages of a failed destination wait, in milliseconds since the epoch. */
export interface ClosedDestination {
  until: number;
  events: number;
  last_error: string;
}

interface Destinations {
  /** Returns until when a new message to the destination has to wait; null if it can be sent now. */
  closureOf(destination: string, now: number): ClosedDestination | null;
  /** Returns the number of consecutive failures, including the recorded one. */
  recordFailure(destination: string): number;
  close(destination: string, closed: ClosedDestination): void;
  /**
   * Selects which waiting messages to send now: those with at most this many attempts. Null if none needs to be sent
   * earlier.
   */
  recordSuccess(destination: string): { attempts: number } | null;
  /** Resets the state of all destinations, because another process delivers now. */
  clear(): void;
}

const ANY_NUMBER = Number.MAX_SAFE_INTEGER;

export function createDestinations(): Destinations {
  const failing = new Map<string, number>();
  const closed = new Map<string, ClosedDestination>();
  return {
    closureOf(destination, now) {
      const closure = closed.get(destination) ?? null;
      return closure !== null && closure.until > now ? closure : null;
    },
    recordFailure(destination) {
      const failures = (failing.get(destination) ?? 0) + 1;
      failing.set(destination, failures);
      return failures;
    },
    close: (destination, closure) => void closed.set(destination, closure),
    recordSuccess(destination) {
      const failures = failing.get(destination);
      failing.set(destination, 0);
      closed.delete(destination);
      if (failures === 0) return null;
      // After a single failure, the message itself may be the cause. It waits for its own retry, and only untried
      // messages are sent.
      return { attempts: failures === 1 ? 0 : ANY_NUMBER };
    },
    clear() {
      failing.clear();
      closed.clear();
    },
  };
}
