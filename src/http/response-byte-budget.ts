/**
 * Limits the bytes of responses in memory, for each key and in total. Counts responses that are being built, and
 * responses that their clients have not read yet. Without a limit, every concurrent list request could use the memory
 * of a full page.
 */
import { Refusal } from "../contract/errors.ts";
import { overloadedRefusal } from "./overload-limits.ts";

/** The bytes that one response occupies. */
export interface ResponseByteShare {
  /**
   * Reserves bytes; releases them if `bytes` is negative. Throws TOO_MANY_BYTES at the limit of the key, and OVERLOADED
   * at the limit of the process. Always admits a small response, and a response of any size if no other counts against
   * the limit.
   */
  hold(bytes: number): void;
  /** Releases all reserved bytes. More calls have no effect. */
  release(): void;
}

export interface ResponseByteBudget {
  /** @param key the id of the key whose responses are counted together; "" for all requests without a key */
  share(key: string): ResponseByteShare;
  readonly bytes: number;
}

/** Maximum size of a response that is never refused, because it uses little memory. Bytes. */
export const SMALL_RESPONSE_BYTES = 16_384;

export function createResponseByteBudget(limits: { total: number; perKey: number }): ResponseByteBudget {
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
          if (more > 0 && held + more > SMALL_RESPONSE_BYTES) {
            // Always admit a key's only response. Otherwise a page above the limit could never be read.
            if (ofKey > held && ofKey + more > limits.perKey)
              throw new Refusal(
                "TOO_MANY_BYTES",
                `this key has ${ofKey} bytes of unread responses, of at most ${limits.perKey}; read them, or request smaller pages, and send the request again after a second`,
                { headers: { "Retry-After": "1" } },
              );
            if (bytes > held && bytes + more > limits.total)
              throw overloadedRefusal(
                `the service has ${bytes} bytes of unread responses, of at most ${limits.total}`,
                {},
              );
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

/** Size of the chunks that are passed to the connection. Bytes. */
const CHUNK_BYTES = 65_536;

/**
 * Streams a complete response as fast as its client reads. Releases the response's share when the client has read it,
 * disconnects, or does not read for `stallMs`.
 */
export function streamReservedResponse(
  bytes: Uint8Array,
  share: ResponseByteShare,
  stallMs: number,
): ReadableStream<Uint8Array> {
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
      stream.error(new Error("the client stopped reading its response"));
    }, stallMs);
    stalled.unref?.();
  }
  return new ReadableStream<Uint8Array>(
    {
      start: watch,
      pull(stream) {
        watch(stream);
        stream.enqueue(bytes.subarray(at, (at += CHUNK_BYTES)));
        if (at < bytes.length) return;
        end();
        stream.close();
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}
