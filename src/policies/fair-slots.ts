/**
 * Limits the number of concurrent reads. A member gets its first slot as soon as one is free. It gets further slots
 * only up to half of those that other members leave, so that its slow reads leave slots for others. A free slot goes to
 * the group with the fewest slots, and within it to the member with the fewest slots.
 */

/** The member of a group on whose behalf a read runs. */
export interface Reader {
  group: string;
  member: string;
}

export interface FairSlots {
  /**
   * Waits for a slot. Resolves to a function that releases the slot. Rejects with the signal's reason if `over` aborts.
   */
  acquire(reader: Reader, aborted: AbortSignal): Promise<() => void>;
}

/** One number for each group and for each of its members. */
export interface SlotCounts {
  add(reader: Reader, change: number): void;
  ofGroup(group: string): number;
  ofMember(reader: Reader): number;
}

export function createSlotCounts(): SlotCounts {
  const groups = new Map<string, number>();
  const members = new Map<string, number>();
  const add = (counts: Map<string, number>, key: string, change: number): void => {
    const count = (counts.get(key) ?? 0) + change;
    if (count > 0) counts.set(key, count);
    else counts.delete(key);
  };
  return {
    add(reader, change) {
      add(groups, reader.group, change);
      add(members, memberKey(reader), change);
    },
    ofGroup: (group) => groups.get(group) ?? 0,
    ofMember: (reader) => members.get(memberKey(reader)) ?? 0,
  };
}

const memberKey = ({ group, member }: Reader): string => JSON.stringify([group, member]);

type Start = () => void;

export function createFairSlots(slots: number): FairSlots {
  let free = slots;
  const slotCounts = createSlotCounts();
  /** Functions that start the waiting reads, oldest first. Keyed by group, then by member. */
  const waiting = new Map<string, Map<string, Set<Start>>>();

  /** Returns true if the member may take a free slot now. */
  function mayTake(reader: Reader): boolean {
    const ownSlots = slotCounts.ofMember(reader);
    return free > 0 && (ownSlots === 0 || ownSlots + 1 <= (free + ownSlots) / 2);
  }

  /**
   * Starts the oldest read of an eligible member: the one with the fewest slots in the group with the fewest slots.
   * Returns false if there is none.
   */
  function startNext(): boolean {
    const mayStart = (group: string, member: string): boolean => mayTake({ group, member });
    const group = takeTurn(
      waiting,
      (name) => slotCounts.ofGroup(name),
      (name, members) => [...members.keys()].some((member) => mayStart(name, member)),
    );
    if (group === null) return false;
    const next = takeTurn(
      group.waiting,
      (member) => slotCounts.ofMember({ group: group.name, member }),
      (member) => mayStart(group.name, member),
    );
    const [start] = next?.waiting ?? [];
    start?.();
    return start !== undefined;
  }

  function join({ group, member }: Reader, start: Start): void {
    const members = waiting.get(group) ?? new Map<string, Set<Start>>();
    waiting.set(group, members.set(member, (members.get(member) ?? new Set()).add(start)));
  }

  function leave({ group, member }: Reader, start: Start): void {
    const members = waiting.get(group);
    const reads = members?.get(member);
    reads?.delete(start);
    if (reads?.size === 0) members?.delete(member);
    if (members?.size === 0) waiting.delete(group);
  }

  function take(reader: Reader): () => void {
    free -= 1;
    slotCounts.add(reader, 1);
    return () => {
      free += 1;
      slotCounts.add(reader, -1);
      while (startNext());
    };
  }

  return {
    async acquire(reader, aborted) {
      aborted.throwIfAborted();
      if (mayTake(reader)) return take(reader);
      return new Promise((resolve, reject) => {
        const start = (): void => {
          leave(reader, start);
          aborted.removeEventListener("abort", giveUp);
          resolve(take(reader));
        };
        // Remove the read from the queue. Otherwise it would get a slot later.
        const giveUp = (): void => {
          leave(reader, start);
          reject(aborted.reason as Error);
        };
        aborted.addEventListener("abort", giveUp, { once: true });
        join(reader, start);
      });
    },
  };
}

/**
 * Returns the queue's entry with the fewest slots among those that can start; null if there is none. Moves it to the
 * end, so that entries with equally many slots take turns.
 */
function takeTurn<T>(
  queue: Map<string, T>,
  held: (name: string) => number,
  mayStart: (name: string, waiting: T) => boolean,
): { name: string; waiting: T } | null {
  let next: string | null = null;
  for (const [name, waiting] of queue)
    if (mayStart(name, waiting) && (next === null || held(name) < held(next))) next = name;
  if (next === null) return null;
  const waiting = queue.get(next) as T;
  queue.delete(next);
  queue.set(next, waiting);
  return { name: next, waiting };
}
