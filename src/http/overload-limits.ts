/**
 * Limits the total bytes of request bodies in memory, and the number of agents' requests in the ledger's queue. A limit
 * on the size of one body does not protect against many slow senders.
 */
import { Refusal } from "../contract/errors.ts";

/** The bytes that one request occupies. */
export interface RequestByteShare {
  /**
   * Throws OVERLOADED if a body of this size would exceed the limit; for a large body, half of the limit. Called before
   * the body is read.
   */
  expect(bytes: number): void;
  /** Adds bytes. Throws OVERLOADED like `expect`, and then adds nothing. */
  take(bytes: number): void;
  /** Releases all bytes. */
  release(): void;
}

/** A share that admits everything, for small requests that must never be refused. */
export const UNLIMITED_SHARE: RequestByteShare = { expect() {}, take() {}, release() {} };

export interface RequestByteBudget {
  share(): RequestByteShare;
  readonly bytes: number;
}

/**
 * Maximum size of a small body, in bytes. Larger bodies are refused once half of the limit is used, so that they leave
 * memory for small bodies.
 */
const SMALL_BODY_BYTES = 65_536;

export function createRequestByteBudget(maxBytes: number): RequestByteBudget {
  let bytes = 0;
  const assertRoom = (held: number, more: number): void => {
    const room = held + more > SMALL_BODY_BYTES ? maxBytes / 2 : maxBytes;
    if (bytes + more > room) throw overloadedRefusal("the service has reached its limit of request bytes in memory");
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

/** @param reason the beginning of the message, without a full stop */
export function overloadedRefusal(reason: string, headers: Record<string, string> = { Connection: "close" }): Refusal {
  return new Refusal("OVERLOADED", `${reason}; send the request again after a second, with the same Idempotency-Key`, {
    headers: { "Retry-After": "1", ...headers },
  });
}

/** Counts requests of agents that are waiting for the ledger. */
export interface RequestQueue {
  /** Throws OVERLOADED if the queue is full. */
  assertRoom(): void;
  /** Enters the queue. Throws OVERLOADED if it is full. */
  enter(): QueueSlot;
  readonly length: number;
}

/** The slot of one request in the queue. */
export interface QueueSlot {
  /** Leaves the queue for good. Repeated calls do nothing. */
  leave(): void;
  /**
   * Leaves the queue while `work` runs. Afterwards enters it again, unless another `without` call of the same request
   * still runs. Rejects with OVERLOADED if the queue is full when the request enters it again.
   */
  without<T>(work: () => Promise<T>): Promise<T>;
}

export function createRequestQueue(maxLength: number): RequestQueue {
  let length = 0;
  function assertRoom(): void {
    // Keep the connection open, because reconnecting takes longer than reading the small body.
    if (length >= maxLength) throw overloadedRefusal(`${length} decisions, starts and results are already queued`, {});
  }
  return {
    get length() {
      return length;
    },
    assertRoom,
    enter() {
      let isQueued = false;
      let hasLeft = false;
      /** Number of `without` calls in progress. */
      let outside = 0;
      const enter = (): void => {
        if (isQueued || hasLeft || outside > 0) return;
        assertRoom();
        length += 1;
        isQueued = true;
      };
      const stepOut = (): void => {
        if (isQueued) length -= 1;
        isQueued = false;
      };
      enter();
      return {
        leave() {
          hasLeft = true;
          stepOut();
        },
        async without(work) {
          outside += 1;
          stepOut();
          try {
            return await work();
          } finally {
            outside -= 1;
            enter();
          }
        },
      };
    },
  };
}
