/**
 * Bounds the bytes of responses that this process holds, for each key and over all: those that are being put together
 * and those that their clients have not read yet. Without it every concurrent list would take the memory of a page.
 */
import { Refusal } from "../contract/errors.ts";
import { overloadedRefusal } from "./in-flight.ts";

/** The bytes that one response holds. */
export interface ResponseShare {
  /** Adds bytes. Throws TOO_MANY_BYTES or OVERLOADED when there is no room for them. */
  hold(bytes: number): void;
  /** Gives all of them back. Repeated calls do nothing. */
  release(): void;
}

export interface ResponsesInFlight {
  /** @param key whose responses are added up; the calls without a key are one key */
  share(key: string): ResponseShare;
  readonly bytes: number;
}

/** A response of fewer bytes is never refused: it takes less than the request that asked for it. */
export const SMALL_RESPONSE = 16_384;

export function createResponsesInFlight(most: { total: number; perKey: number }): ResponsesInFlight {
  let bytes = 0;
  const byKey = new Map<string, number>();
  return {
    get bytes() {
      return bytes;
    },
    share(key) {
      let held = 0;
      return {
        hold(more) {
          const ofKey = byKey.get(key) ?? 0;
          if (held + more > SMALL_RESPONSE) {
            // A response always fits while it is the only one, or a page larger than the bound could never be read.
            if (ofKey > held && ofKey + more > most.perKey)
              throw new Refusal(
                "TOO_MANY_BYTES",
                `this key has ${ofKey} bytes of responses on their way, of at most ${most.perKey}; read them, or ask for smaller pages, and send the request again after a second`,
                { headers: { "Retry-After": "1" } },
              );
            if (bytes > held && bytes + more > most.total)
              throw overloadedRefusal(`${bytes} bytes of responses are on their way, of at most ${most.total}`, {});
          }
          held += more;
          bytes += more;
          byKey.set(key, ofKey + more);
        },
        release() {
          if (held === 0) return;
          bytes -= held;
          const left = (byKey.get(key) ?? 0) - held;
          if (left === 0) byKey.delete(key);
          else byKey.set(key, left);
          held = 0;
        },
      };
    },
  };
}

/** Bytes that are handed to the connection at once. */
const PIECE = 65_536;

/**
 * Streams a response that is ready, as fast as its client reads, and gives its share back when it has been read, its
 * client has left, or its client has not read any of it for `stallMs`.
 */
export function streamHeld(bytes: Uint8Array, share: ResponseShare, stallMs: number): ReadableStream<Uint8Array> {
  let at = 0;
  let stalled: ReturnType<typeof setTimeout> | undefined;
  function end(): void {
    clearTimeout(stalled);
    share.release();
  }
  function watch(stream: ReadableStreamDefaultController<Uint8Array>): void {
    clearTimeout(stalled);
    stalled = setTimeout(() => {
      end();
      stream.error(new Error("the client does not read its response"));
    }, stallMs);
    stalled.unref?.();
  }
  return new ReadableStream<Uint8Array>(
    {
      start: watch,
      pull(stream) {
        watch(stream);
        stream.enqueue(bytes.subarray(at, (at += PIECE)));
        if (at < bytes.length) return;
        end();
        stream.close();
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}
