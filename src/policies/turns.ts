/** Lets a limited number of reads run at a time. Those that wait take turns by policy, so that none waits for all reads of another. */

export interface Turns {
  /**
   * Waits for a slot. Resolves to a function that releases it. Rejects with the signal's reason.
   * @param policies for which the slot is wanted. Others can be added while it waits.
   */
  acquire(policies: ReadonlySet<string>, over: AbortSignal): Promise<() => void>;
}

interface Waiting {
  policies: ReadonlySet<string>;
  start(): void;
}

export function createTurns(slots: number): Turns {
  let free = slots;
  /** Number of slots that each policy has. */
  const held = new Map<string, number>();
  const waiting = new Set<Waiting>();

  /** The fewest slots that one of the policies has. */
  const slotsOf = (policies: ReadonlySet<string>): number =>
    Math.min(...[...policies].map((policy) => held.get(policy) ?? 0));

  /** Returns the first read in order of arrival, of the policy with the fewest slots. */
  function next(): Waiting | null {
    let first: Waiting | null = null;
    for (const one of waiting) if (first === null || slotsOf(one.policies) < slotsOf(first.policies)) first = one;
    return first;
  }

  function add(policies: readonly string[], change: number): void {
    for (const policy of policies) {
      const count = (held.get(policy) ?? 0) + change;
      if (count > 0) held.set(policy, count);
      else held.delete(policy);
    }
  }

  function take(wanted: ReadonlySet<string>): () => void {
    const policies = [...wanted];
    free -= 1;
    add(policies, 1);
    return () => {
      free += 1;
      add(policies, -1);
      next()?.start();
    };
  }

  return {
    async acquire(policies, over) {
      if (free > 0) return take(policies);
      return new Promise((resolve, reject) => {
        const place: Waiting = {
          policies,
          start() {
            waiting.delete(place);
            over.removeEventListener("abort", giveUp);
            resolve(take(policies));
          },
        };
        // A read that gives up leaves the queue, or it would be given a slot later.
        const giveUp = (): void => {
          waiting.delete(place);
          reject(over.reason as Error);
        };
        over.addEventListener("abort", giveUp, { once: true });
        waiting.add(place);
      });
    },
  };
}
