/**
 * The stream of one subscriber (HTML standard, section 9.2, server-sent events). Reads from the ledger only as fast as
 * the client reads, so that a slow client has only one batch buffered. Events are not lost, because a client resumes
 * from a sequence number.
 */
import type { CoreHost } from "../../src/core.ts";
import { toEventJson, type EventFilter } from "./filter.ts";
import type { Feed } from "./feed.ts";

interface StreamOptions {
  host: CoreHost;
  feed: Feed;
  filter: EventFilter;
  /** First sequence number to read. */
  from: number;
  heartbeatMs: number;
  retryMs: number;
  /** Milliseconds after which a client that does not read a batch is disconnected. It can resume by sequence number. */
  stallMs: number;
  /** Called once when the stream ends for any reason. */
  ended(): void;
  /** The signal of the request. */
  signal: AbortSignal;
}

/** Size in characters after which a batch is sent. The last event of the batch can exceed it. */
const CHUNK_LENGTH = 256 * 1024;
const encoder = new TextEncoder();

export function createStream(options: StreamOptions): ReadableStream<Uint8Array> {
  const stream = new EventStream(options);
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) => stream.pull(controller),
      cancel: () => stream.finish(),
    },
    { highWaterMark: 0 },
  );
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

class EventStream {
  private readonly options: StreamOptions;
  private readonly over = new AbortController();
  private readonly signal: AbortSignal;
  /** Next sequence number to read. */
  private next: number;
  /** Sequence number of the last event or position that was sent to the client; null before the first. */
  private anchor: number | null = null;
  private sentAt = performance.now();
  private stalled: ReturnType<typeof setTimeout> | null = null;

  constructor(options: StreamOptions) {
    this.options = options;
    this.signal = AbortSignal.any([this.over.signal, options.signal]);
    this.next = options.from;
  }

  async pull(controller: Controller): Promise<void> {
    try {
      await this.sendNext(controller);
    } catch (error) {
      if (this.over.signal.aborted) return;
      this.options.host.log.warn("an event stream failed; its client can resume by sequence number", {
        error: String(error),
      });
      this.finish();
      controller.error(error);
    }
  }

  finish(): void {
    if (this.over.signal.aborted) return;
    this.over.abort();
    if (this.stalled !== null) clearTimeout(this.stalled);
    this.options.ended();
  }

  /** Waits for events, then sends them. Sends a heartbeat if none arrive. */
  private async sendNext(controller: Controller): Promise<void> {
    const { host, feed, heartbeatMs, retryMs } = this.options;
    if (this.stalled !== null) clearTimeout(this.stalled);
    if (this.anchor === null) return this.send(controller, `retry: ${retryMs}\n${this.position()}`);
    while (!this.over.signal.aborted) {
      if (this.signal.aborted) return this.end(controller, "the service is stopping; connect again");
      // A fast client requests batches continuously. Wait for a slot before each batch, so that its replay does not
      // block the event loop.
      await host.waitForReadSlot();
      if (this.over.signal.aborted) return;
      const { text, looked, last } = await this.readBatch();
      this.next += looked;
      this.anchor = last ?? this.anchor;
      if (text !== "") return this.send(controller, text);
      const quiet = performance.now() - this.sentAt;
      if (quiet >= heartbeatMs) {
        // Send the position, so that a client with a narrow filter does not have to read the filtered entries again.
        return this.send(controller, this.anchor === this.next - 1 ? ": heartbeat\n" : this.position());
      }
      if (looked === 0) await feed.wait(this.next, heartbeatMs - quiet, this.signal);
    }
  }

  /**
   * Reads the next events as text. Also returns the number of entries that were read and the sequence number of the
   * last event.
   */
  private async readBatch(): Promise<{ text: string; looked: number; last: number | null }> {
    let text = "";
    let looked = 0;
    let last: number | null = null;
    for (const row of await this.options.feed.page(this.next)) {
      if (await this.options.filter.passes(row)) {
        text += `id: ${row.seq}\ndata: ${toEventJson(row)}\n\n`;
        last = row.seq;
      }
      looked += 1;
      if (text.length > CHUNK_LENGTH) break;
    }
    return { text, looked, last };
  }

  /**
   * Returns a named event with the current position, from which a client can resume. The event has data, because
   * several clients dispatch an event for every block that ends in an empty line. For them, a block with only an id or
   * a comment is an event without data.
   */
  private position(): string {
    this.anchor = this.next - 1;
    return `id: ${this.anchor}\nevent: position\ndata: ${JSON.stringify({ type: "position", seq: this.anchor })}\n\n`;
  }

  private send(controller: Controller, text: string): void {
    this.sentAt = performance.now();
    controller.enqueue(encoder.encode(text));
    this.stalled = setTimeout(() => {
      this.finish();
      controller.error(new Error("the client stopped reading"));
    }, this.options.stallMs);
    this.stalled.unref?.();
  }

  private end(controller: Controller, reason: string): void {
    this.finish();
    controller.enqueue(encoder.encode(`: ${reason}\n`));
    controller.close();
  }
}
