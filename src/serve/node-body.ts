/** Reads a Node request's body straight from its stream: building a web stream around it costs more than the rest of a small request. */
import type { IncomingMessage } from "node:http";
import { createCollector } from "../http/collector.ts";

/** Rejects with BodyTooLarge above `max` bytes, with what `take` throws, and with the stream's error when the client goes away. */
export function readNodeBody(
  request: IncomingMessage,
  max: number,
  take: (bytes: number) => void,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    // What is over tells nobody so a second time.
    if (request.destroyed) return reject(new Error("the connection closed before the body was whole"));
    const body = createCollector(max, take);
    const end = (settle: () => void): void => {
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
        // What is still to come is read and thrown away by the connection's end.
        end(() => reject(error as Error));
        request.resume();
      }
    };
    const onEnd = (): void => end(() => resolve(body.whole()));
    const onError = (error: Error): void => end(() => reject(error));
    const onClose = (): void => end(() => reject(new Error("the connection closed before the body was whole")));
    request.on("data", onData);
    request.on("end", onEnd);
    request.on("error", onError);
    request.on("close", onClose);
  });
}

/** Resolves when the body has ended, `most` bytes have gone by, or nothing came for `patienceMs`. Never rejects. */
export function discardNodeBody(request: IncomingMessage, most: number, patienceMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (request.complete || request.destroyed) return resolve();
    let size = 0;
    const done = (): void => {
      clearTimeout(timer);
      for (const name of ["end", "error", "close"]) request.off(name, done);
      request.off("data", onData);
      // Whatever else comes is dropped until the connection ends.
      request.resume();
      resolve();
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      timer.refresh();
      if (size > most) done();
    };
    const timer = setTimeout(done, patienceMs);
    for (const name of ["end", "error", "close"]) request.on(name, done);
    request.on("data", onData);
  });
}
