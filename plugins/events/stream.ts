/**
 * The stream of one subscriber (HTML standard, section 9.2, server-sent events). Reads from the ledger only as fast as the
 * client reads, so a slow client buffers one batch. It loses nothing, because it continues from a sequence number.
 */
import type { CoreHost } from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import { toEventJson, type EventFilter } from "./filter.ts";
import type { Feed } from "./feed.ts";

interface StreamOptions {
  host: CoreHost;
  feed: Feed;
  filter: EventFilter;
  credential: Credential;
  /** First sequence number to read. */
  from: number;
  heartbeatMs: number;
  retryMs: number;
  /** Time after which a client that does not read a batch is disconnected. It can resume by sequence number. */
  stallMs: number;
  /** Called once when the stream ends for any reason. */
  ended(): void;
}

/** Size in bytes above which a batch is sent. */
const CHUNK = 256 * 1024;
const encoder = new TextEncoder();

export function createStream(options: StreamOptions): ReadableStream<Uint8Array> {
  const { host, feed, filter, heartbeatMs } = options;
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, host.stopping]);
  let next = options.from;
  /** The last sequence number that was sent to the client; null before the first event. */
  let anchor: number | null = null;
  let credential = options.credential;
  let sentAt = performance.now();
  let stalled: ReturnType<typeof setTimeout> | null = null;

  function finish(): void {
    if (over.signal.aborted) return;
    over.abort();
    if (stalled !== null) clearTimeout(stalled);
    options.ended();
  }

  function send(controller: ReadableStreamDefaultController<Uint8Array>, text: string): void {
    sentAt = performance.now();
    controller.enqueue(encoder.encode(text));
    stalled = setTimeout(() => {
      finish();
      controller.error(new Error("the client stopped reading"));
    }, options.stallMs);
    stalled.unref?.();
  }

  function end(controller: ReadableStreamDefaultController<Uint8Array>, why: string): void {
    finish();
    controller.enqueue(encoder.encode(`: ${why}\n`));
    controller.close();
  }

  /**
   * Returns a named event with the current position, from which a client can resume. It has data, because several clients
   * dispatch an event for every block that ends in an empty line, even a block with only an id or a comment.
   */
  function position(): string {
    anchor = next - 1;
    return `id: ${anchor}\nevent: position\ndata: ${JSON.stringify({ type: "position", seq: anchor })}\n\n`;
  }

  /** Reads the next events as text, and how far they go. The entry that revokes the stream's key ends the stream. */
  async function batch(): Promise<{ text: string; looked: number; last: number | null; keysChanged: boolean }> {
    let text = "";
    let looked = 0;
    let last: number | null = null;
    let keysChanged = false;
    for (const row of await feed.page(next)) {
      if (await filter.passes(row)) {
        text += `id: ${row.seq}\ndata: ${toEventJson(row)}\n\n`;
        last = row.seq;
      }
      keysChanged ||= row.type === "api_key";
      looked += 1;
      if (keysChanged || text.length > CHUNK) break;
    }
    return { text, looked, last, keysChanged };
  }

  async function isLive(): Promise<boolean> {
    const current = await host.keys.refresh(credential);
    if (current === null) return false;
    credential = current;
    return true;
  }

  async function pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (stalled !== null) clearTimeout(stalled);
    if (anchor === null) return send(controller, `retry: ${options.retryMs}\n${position()}`);
    while (!over.signal.aborted) {
      if (host.stopping.aborted) return end(controller, "the service is stopping; connect again");
      // A fast client requests batches continuously, so wait for a slot before each, or its replay would block the event loop.
      await host.waitForReadSlot();
      if (over.signal.aborted) return;
      const { text, looked, last, keysChanged } = await batch();
      next += looked;
      anchor = last ?? anchor;
      if (keysChanged && !(await isLive())) return end(controller, "the API key was revoked");
      if (text !== "") return send(controller, text);
      const quiet = performance.now() - sentAt;
      if (quiet >= heartbeatMs) {
        // The expiry of a key is not an entry, so it is checked here.
        if (!(await isLive())) return end(controller, "the API key has expired");
        // Send the position, so that a client with a narrow filter does not start again before the filtered entries.
        return send(controller, anchor === next - 1 ? ": heartbeat\n" : position());
      }
      if (looked === 0) await feed.wait(next, heartbeatMs - quiet, signal);
    }
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          await pull(controller);
        } catch (error) {
          if (over.signal.aborted) return;
          host.log.warn("an event stream failed; its client can resume by sequence number", { error: String(error) });
          finish();
          controller.error(error);
        }
      },
      cancel: finish,
    },
    { highWaterMark: 0 },
  );
}
