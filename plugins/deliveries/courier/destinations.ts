/**
 * The courier's circuit breaker. While a destination fails, the courier sends it one message at a time as a probe, and
 * its other messages wait. When a probe succeeds, the waiting messages are sent.
 *
 * The state is only in memory: after a restart each destination is probed once.
 */
/** Maximum time between probes for messages that expire, plus or minus a quarter. Milliseconds. */
export const MAX_PROBE_PAUSE_MS = 60_000;

/**
 * A destination that failed. Messages wait until `until`, and events until `events_until`. Milliseconds since the
 * epoch.
 */
export interface ClosedDestination {
  until: number;
  events_until: number;
  last_error: string;
}

interface Destinations {
  /** Returns when messages and events to the destination can be sent again; null if a new message can be sent now. */
  closureOf(destination: string, now: number): ClosedDestination | null;
  /** Records a failure. Returns the number of consecutive failures, including this one. */
  recordFailure(destination: string): number;
  close(destination: string, closed: ClosedDestination): void;
  /**
   * Records a success. Waiting messages with at most the returned number of `attempts` must then be sent at once.
   * Returns null if no message has to be sent earlier.
   */
  recordSuccess(destination: string): { attempts: number } | null;
  /** Resets the state of all destinations. Called when another process has taken over the deliveries. */
  clear(): void;
}

const ANY_NUMBER = Number.MAX_SAFE_INTEGER;

export function createCircuitBreaker(): Destinations {
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
      // A single failure may have been caused by the message itself. Let that message wait for its retry, and send only
      // messages without an attempt.
      return { attempts: failures === 1 ? 0 : ANY_NUMBER };
    },
    clear() {
      failing.clear();
      closed.clear();
    },
  };
}
