/**
 * How old a message is, by the steady clock of whoever gets it: nobody sets that, so that the times of day may differ. Each answer says
 * what the clock showed. The sender gives a message the time at which it began with it, on that clock: the answer's, and
 * what has passed since the answer came. The answer was on its way, too, so that a message counts as older than it is,
 * and never as younger.
 */
import type { Question } from "./seal.ts";

/** Longest wait for the answer to a message. Milliseconds. */
export const PATIENCE = 2_000;
/** Whoever sent it does it himself after PATIENCE: what is older than this is left to him. Milliseconds. */
export const LONGEST_WAIT = (PATIENCE * 3) / 4;
/** Of two steady clocks one can be faster by so much, which is more than any is. */
const SLOWEST_PACE = 0.999;
/** A clock is asked again when nothing was heard of it for so long. Milliseconds. */
const CLOCK_KEPT = 60_000;
/** Messages that a process remembers. So many do not come in LONGEST_WAIT. */
const MOST_REMEMBERED = 16_384;

/** The sending side. */
export interface Clocks {
  knows(instance: string): boolean;
  /** An answer of `instance` said so. Milliseconds. */
  note(instance: string, theirs: number): void;
  forget(): void;
  /** What that clock showed when this process's showed `mine`, or less. Whole milliseconds; 0 where nothing is known of it. */
  at(instance: string, mine: number): number;
}

export function createClocks(steady: () => number): Clocks {
  let last: { instance: string; theirs: number; mine: number } | null = null;

  function at(instance: string, mine: number): number {
    if (last?.instance !== instance) return 0;
    const since = mine - last.mine;
    // Before the answer as after it: the bound that is lower.
    return Math.max(0, Math.floor(last.theirs + since * (since < 0 ? 2 - SLOWEST_PACE : SLOWEST_PACE)));
  }

  return {
    at,
    knows: (instance) => last?.instance === instance && steady() - last.mine < CLOCK_KEPT,
    note(instance, theirs) {
      const mine = steady();
      // An answer that was longer on its way tells less.
      if (theirs >= at(instance, mine)) last = { instance, theirs, mine };
    },
    forget() {
      last = null;
    },
  };
}

/** The receiving side. */
export interface Arrivals {
  isStale(question: Pick<Question, "sent">): boolean;
  /** Once for each message that is whole: `again` where it came before. */
  take(question: Pick<Question, "sent" | "nonce">): "fresh" | "again" | "stale";
}

export function createArrivals(steady: () => number): Arrivals {
  /** When each came, in that order. What is no longer here is too old to come again. */
  const seen = new Map<string, number>();

  function isStale({ sent }: Pick<Question, "sent">): boolean {
    const age = steady() - sent;
    // One from the future was timed by a clock that has stood still since.
    return age < 0 || age > LONGEST_WAIT;
  }

  return {
    isStale,
    take(question) {
      if (seen.has(question.nonce)) return "again";
      const now = steady();
      for (const [nonce, at] of seen) {
        if (now - at <= LONGEST_WAIT) break;
        seen.delete(nonce);
      }
      if (isStale(question) || seen.size >= MOST_REMEMBERED) return "stale";
      seen.set(question.nonce, now);
      return "fresh";
    },
  };
}
