/**
 * Where messages go, and whether they arrive. While a destination fails, one message at a time goes there, a probe; what
 * waits with it waits until the next. When a probe gets through, all that waits follows.
 *
 * This process keeps it in mind and no other: after a start each destination is probed once.
 */
/** So long something that runs out waits for the next probe at most, a quarter more or less. Milliseconds. */
export const MAX_PROBE_PAUSE_MS = 60_000;

/** What a failure means for the others of its destination. Milliseconds since the epoch. */
export interface ClosedDestination {
  until: number;
  events: number;
  last_error: string;
}

export interface Destinations {
  /** What keeps a message that nobody has tried yet from being the next probe; null where nothing does. */
  closureOf(destination: string, now: number): ClosedDestination | null;
  /** How often it has failed in a row, this time included. */
  recordFailure(destination: string): number;
  close(destination: string, closed: ClosedDestination): void;
  /** It got through: what waits and was tried so often at most goes now. Null where nothing waits for that. */
  recordSuccess(destination: string): { attempts: number } | null;
  /** Another process delivers meanwhile. */
  clear(): void;
}

const EVERY = Number.MAX_SAFE_INTEGER;

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
    close: (destination, why) => void closed.set(destination, why),
    recordSuccess(destination) {
      const failures = failing.get(destination);
      failing.set(destination, 0);
      closed.delete(destination);
      if (failures === 0) return null;
      // One failure alone may be that message's own fault: it keeps its pause, and those it held up go.
      return { attempts: failures === 1 ? 0 : EVERY };
    },
    clear() {
      failing.clear();
      closed.clear();
    },
  };
}
