import { BodyTooLarge } from "./request-info.ts";

/**
 * Collects a body in one buffer, whose size doubles as bytes arrive. The memory depends on the received bytes, and not
 * on Content-Length or the number of chunks.
 */
interface Collector {
  /** Adds a chunk. Throws BodyTooLarge, or the error of `take`. */
  add(chunk: Uint8Array): void;
  bytes(): Uint8Array;
}

/**
 * @param max the maximum number of bytes
 * @param take called with the number of added bytes before the buffer grows
 */
export function createCollector(max: number, take: (bytes: number) => void): Collector {
  /** Initially the first chunk itself. It is usually the whole body, which then does not have to be copied. */
  let buffer: Uint8Array | null = null;
  let size = 0;
  return {
    add(chunk) {
      if (size + chunk.length > max) throw new BodyTooLarge();
      if (buffer === null) {
        take(chunk.length);
        buffer = chunk;
      } else {
        if (size + chunk.length > buffer.length) {
          const room = Math.min(max, Math.max(2 * buffer.length, size + chunk.length));
          take(room - buffer.length);
          const larger = new Uint8Array(room);
          larger.set(buffer.subarray(0, size));
          buffer = larger;
        }
        buffer.set(chunk, size);
      }
      size += chunk.length;
    },
    bytes: () => buffer?.subarray(0, size) ?? new Uint8Array(0),
  };
}
