/**
 * One subscriber's stream (the HTML standard, section 9.2, Server-sent events). It reads only when
 * the client does: what is buffered for a slow client is one batch, and it loses nothing, because
 * where it goes on is a sequence and not a place in a queue.
 */
import type { CoreHost } from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import { textOf, type EventFilter } from "./filter.ts";
import type { Feed } from "./feed.ts";

export interface StreamOptions {
  host: CoreHost;
  feed: Feed;
  filter: EventFilter;
  credential: Credential;
  /** First sequence to look at. */
  from: number;
  heartbeatMs: number;
  retryMs: number;
  /** How long a client may leave a batch unread before it is cut off. It resumes by sequence. */
  stallMs: number;
  /** Called once, however the stream ends. */
  ended(): void;
}

/** Bytes after which a batch is sent, though more is there. */
const CHUNK = 256 * 1024;
const encoder = new TextEncoder();

export function createStream(options: StreamOptions): ReadableStream<Uint8Array> {
  const { host, feed, filter, heartbeatMs } = options;
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, host.stopping]);
  let next = options.from;
  /** The last sequence that the client was anchor. Null before the first block. */
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
      controller.error(new Error("the client does not read"));
    }, options.stallMs);
    stalled.unref?.();
  }

  function end(controller: ReadableStreamDefaultController<Uint8Array>, why: string): void {
    finish();
    controller.enqueue(encoder.encode(`: ${why}\n`));
    controller.close();
  }

  /**
   * Where the stream is, for a client to resume from: an event with a name, an id and data. Several clients hand out an
   * event for any block that ends in an empty line, one with an id alone and a comment included; so no block of ours is
   * without data, and a comment is a line and no block.
   */
  function position(): string {
    anchor = next - 1;
    return `id: ${anchor}\nevent: position\ndata: ${JSON.stringify({ type: "position", seq: anchor })}\n\n`;
  }

  /** Events as text, and how far it got. A key that is revoked ends the stream at its own entry. */
  async function batch(): Promise<{ text: string; looked: number; last: number | null; keysChanged: boolean }> {
    let text = "";
    let looked = 0;
    let last: number | null = null;
    let keysChanged = false;
    for (const row of await feed.page(next)) {
      if (await filter.passes(row)) {
        text += `id: ${row.seq}\ndata: ${textOf(row)}\n\n`;
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
      // A client that reads fast asks for the next batch at once: without this its replay would run in one turn.
      await host.waitForReadSlot();
      if (over.signal.aborted) return;
      const { text, looked, last, keysChanged } = await batch();
      next += looked;
      anchor = last ?? anchor;
      if (keysChanged && !(await isLive())) return end(controller, "the API key was revoked");
      if (text !== "") return send(controller, text);
      const quiet = performance.now() - sentAt;
      if (quiet >= heartbeatMs) {
        // Expiry of a key has no entry.
        if (!(await isLive())) return end(controller, "the API key has expired");
        // A filter that lets little through must not make a client read the same entries again.
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
          host.log.warn("an event stream failed; its client resumes by sequence", { error: String(error) });
          finish();
          controller.error(error);
        }
      },
      cancel: finish,
    },
    { highWaterMark: 0 },
  );
}
