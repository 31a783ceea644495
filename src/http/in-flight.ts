/**
 * Bytes of request bodies that this process holds, over all requests: those that are still coming and those that are
 * worked on. A limit for each body alone is none for a thousand slow senders.
 */
import { Refusal } from "../contract/errors.ts";

/** What one request holds. */
export interface Share {
  /** Refuses a body of so many bytes before any of it is read. Throws OVERLOADED. */
  expect(bytes: number): void;
  /** So many more are held. Throws OVERLOADED. */
  take(bytes: number): void;
  /** Nothing is held any more. */
  release(): void;
}

/** For what is small, and must get through. */
export const UNLIMITED_SHARE: Share = { expect() {}, take() {}, release() {} };

export interface InFlight {
  share(): Share;
  readonly bytes: number;
}

/** A body of more bytes finds half of the room alone, so that large ones leave some for small ones. */
const SMALL = 65_536;

export function createInFlight(most: number): InFlight {
  let bytes = 0;
  const assertRoom = (held: number, more: number): void => {
    const room = held + more > SMALL ? most / 2 : most;
    if (bytes + more > room) throw overloadedRefusal("the service holds as many bytes of requests as it takes");
  };
  return {
    get bytes() {
      return bytes;
    },
    share() {
      let held = 0;
      return {
        expect: (more) => assertRoom(held, more),
        take(more) {
          assertRoom(held, more);
          held += more;
          bytes += more;
        },
        release() {
          bytes -= held;
          held = 0;
        },
      };
    },
  };
}

/** @param why in lowercase, without an end */
export function overloadedRefusal(why: string, headers: Record<string, string> = { Connection: "close" }): Refusal {
  return new Refusal("OVERLOADED", `${why}; send the request again after a second, with the same Idempotency-Key`, {
    headers: { "Retry-After": "1", ...headers },
  });
}

/** Requests of agents that are on their way into the ledger: read, and not answered yet. */
export interface Queue {
  /** Throws OVERLOADED when it is full. */
  assertRoom(): void;
  /** Answers how to leave; leaving twice is leaving once. Throws OVERLOADED. */
  enter(): () => void;
  readonly length: number;
}

export function createQueue(most: number): Queue {
  let length = 0;
  function assertRoom(): void {
    // The connection is kept: to open it again costs more than its small body.
    if (length >= most) throw overloadedRefusal(`${length} decisions, starts and results are on their way already`, {});
  }
  return {
    get length() {
      return length;
    },
    assertRoom,
    enter() {
      assertRoom();
      length += 1;
      let inside = true;
      return () => {
        if (inside) length -= 1;
        inside = false;
      };
    },
  };
}
