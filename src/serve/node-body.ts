/**
 * Reads the body of a Node request directly from its stream. Wrapping the stream in a web stream would take longer than
 * the rest of a small request.
 */
import type { IncomingMessage } from "node:http";
import { createCollector } from "../http/collector.ts";

/**
 * Reads the whole body. Rejects with BodyTooLarge if the body exceeds `max` bytes, with any error that `take` throws,
 * and with the error of the stream if the client disconnects.
 * @param take a function that is called with the number of bytes of each chunk
 */
export function readNodeBody(
  request: IncomingMessage,
  max: number,
  take: (bytes: number) => void,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    // A destroyed stream does not emit more events.
    if (request.destroyed) return reject(new Error("the connection closed before the body was complete"));
    const body = createCollector(max, take);
    const finish = (settle: () => void): void => {
      request.off("data", onData);
      request.off("end", onEnd);
      request.off("error", onError);
      request.off("close", onClose);
      settle();
    };
    const onData = (chunk: Buffer): void => {
      try {
        body.add(chunk);
      } catch (error) {
        // Discard the rest of the body.
        finish(() => reject(error as Error));
        request.resume();
      }
    };
    const onEnd = (): void => finish(() => resolve(body.bytes()));
    const onError = (error: Error): void => finish(() => reject(error));
    const onClose = (): void => finish(() => reject(new Error("the connection closed before the body was complete")));
    request.on("data", onData);
    request.on("end", onEnd);
    request.on("error", onError);
    request.on("close", onClose);
  });
}

/** Discards the body. Resolves at its end, after `maxBytes`, or when no data arrives for `timeoutMs`. Never rejects. */
export function discardNodeBody(request: IncomingMessage, maxBytes: number, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (request.complete || request.destroyed) return resolve();
    let size = 0;
    const done = (): void => {
      clearTimeout(timer);
      for (const name of ["end", "error", "close"]) request.off(name, done);
      request.off("data", onData);
      // Discard all other data until the connection ends.
      request.resume();
      resolve();
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      timer.refresh();
      if (size > maxBytes) done();
    };
    const timer = setTimeout(done, timeoutMs);
    for (const name of ["end", "error", "close"]) request.on(name, done);
    request.on("data", onData);
  });
}
