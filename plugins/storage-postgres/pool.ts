/** Sessions for reads. Queries share sessions; each snapshot has its own session. */
import { StorageError } from "../../src/storage/index.ts";
import type { Session } from "./database-session.ts";

export interface Pool {
  /** Runs the work on a session that other queries may use at the same time. */
  shared<T>(work: (session: Session) => Promise<T>): Promise<T>;
  /** Runs the work on a session that no other query uses until the work is done. */
  alone<T>(work: (session: Session) => Promise<T>): Promise<T>;
  end(): Promise<void>;
}

/**
 * Creates a pool of at most `max` sessions.
 * @param open connects a session that is ready for use
 */
export function createPool(max: number, open: () => Promise<Session>): Pool {
  let sessions: Session[] = [];
  /** Number of users of each session; Infinity while a snapshot uses it. */
  const users = new Map<Session, number>();
  let opening = 0;
  let ended = false;
  let waiting: (() => void)[] = [];

  function wake(): void {
    const woken = waiting;
    waiting = [];
    for (const go of woken) go();
  }

  async function grow(): Promise<void> {
    opening++;
    try {
      const session = await open();
      if (ended) {
        void session.end();
        throw new StorageError("unavailable", "the store is being closed");
      }
      sessions.push(session);
      void session.gone.then(() => {
        sessions = sessions.filter((other) => other !== session);
        users.delete(session);
        wake();
      });
    } finally {
      opening--;
      wake();
    }
  }

  /** Returns the session with the fewest users. Opens a new session if all are busy and the maximum is not reached. */
  async function acquire(weight: number): Promise<Session> {
    for (;;) {
      if (ended) throw new StorageError("unavailable", "the store is being closed");
      const best = sessions.reduce<Session | null>(
        (a, b) => (b.lost === null && (a === null || usersOf(b) < usersOf(a)) ? b : a),
        null,
      );
      const load = best === null ? Infinity : usersOf(best);
      if (best !== null && (load === 0 || (sessions.length + opening >= max && load < Infinity && weight === 1))) {
        users.set(best, load + weight);
        return best;
      }
      if (sessions.length + opening < max) await grow();
      else await new Promise<void>((resolve) => waiting.push(resolve));
    }
  }

  function usersOf(session: Session): number {
    return users.get(session) ?? 0;
  }

  async function using<T>(weight: number, work: (session: Session) => Promise<T>): Promise<T> {
    const session = await acquire(weight);
    try {
      return await work(session);
    } finally {
      users.set(session, weight === 1 ? usersOf(session) - 1 : 0);
      if (session.lost !== null) users.delete(session);
      wake();
    }
  }

  return {
    shared: (work) => using(1, work),
    alone: (work) => using(Infinity, work),
    async end() {
      ended = true;
      wake();
      await Promise.all(sessions.map((session) => session.end()));
    },
  };
}
