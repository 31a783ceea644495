import { BodyTooLarge } from "./request-info.ts";

/**
 * Puts a body together in one buffer that grows with what has come: neither a length that was only announced nor a
 * thousand little chunks cost more memory than the body.
 */
export interface Collector {
  /** Throws BodyTooLarge, and what `take` throws. */
  add(chunk: Uint8Array): void;
  whole(): Uint8Array;
}

/**
 * @param max bytes
 * @param take is told of every byte before it is held
 */
export function createCollector(max: number, take: (bytes: number) => void): Collector {
  /** The first chunk is mostly all there is, and is kept as it is. */
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
    whole: () => buffer?.subarray(0, size) ?? new Uint8Array(0),
  };
}
