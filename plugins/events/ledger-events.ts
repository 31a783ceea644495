/** Serves requests for events: opens streams within the limits per key and per process, and reads pages. */
import { callerId, type CoreHost } from "../../src/core.ts";
import { type Credential, Refusal, type Reply, type RequestContext } from "../../src/plugin.ts";
import { createFeed, type Feed } from "./feed.ts";
import { createFilter, createToolLookup } from "./filter.ts";
import { pollEvents } from "./poll.ts";
import type { EventsQuery, PageQuery } from "./schemas.ts";
import { createStream } from "./stream.ts";

type StreamRequest = RequestContext<unknown, EventsQuery, undefined, Credential>;
type PageRequest = RequestContext<unknown, PageQuery, undefined, Credential>;

interface StreamLimits {
  maxStreamsPerKey: number;
  /** Maximum number of open streams of this process. */
  maxStreams: number;
  heartbeatMs: number;
  retryMs: number;
  stallMs: number;
}

export class LedgerEvents {
  private readonly host: CoreHost;
  private readonly limits: StreamLimits;
  private readonly feed: Feed;
  private readonly toolOf: ReturnType<typeof createToolLookup>;
  /** Number of open streams, keyed by the id of the key or the user. */
  private readonly open = new Map<string, number>();
  private total = 0;

  constructor(host: CoreHost, limits: StreamLimits) {
    this.host = host;
    this.limits = limits;
    this.toolOf = createToolLookup(host);
    this.feed = createFeed(host);
  }

  async follow({ query, credential, headers, signal }: StreamRequest): Promise<Reply> {
    checkAgent(query);
    if (!acceptsStream(headers.get("accept")))
      throw new Refusal(
        "NOT_ACCEPTABLE",
        "this route is a stream of text/event-stream; GET /v1/events/page returns the same events as JSON",
      );
    const last = lastEventId(headers) ?? query.after;
    const size = await this.sizeAfter(last);
    return this.stream({ query, credential, signal }, last === undefined ? size : last + 1);
  }

  async page({ query, credential, reserveResponseBytes }: PageRequest): Promise<Reply> {
    checkAgent(query);
    const size = await this.sizeAfter(query.after);
    const filter = createFilter(query, credential, this.toolOf);
    return { status: 200, json: await pollEvents(this.host, query, filter, size, reserveResponseBytes) };
  }

  /**
   * Resolves to the size of the ledger. Throws if the ledger does not contain the last event that the client received.
   */
  private async sizeAfter(last: number | undefined): Promise<number> {
    const { size } = await this.host.ledger.head();
    if (last !== undefined && last >= size)
      throw new Refusal(
        "INVALID_RANGE",
        `there is no event ${last} yet: the newest is ${size - 1}; the store may have been replaced by an older one`,
      );
    return size;
  }

  private stream(
    { query, credential, signal }: Pick<StreamRequest, "query" | "credential" | "signal">,
    from: number,
  ): Reply {
    const { host, feed } = this;
    const { heartbeatMs, retryMs, stallMs } = this.limits;
    const id = callerId(credential);
    this.assertCapacity(credential);
    this.open.set(id, this.openOf(id) + 1);
    this.total += 1;
    const leave = feed.join();
    return {
      status: 200,
      headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
      farewell: (reason) => `: ${reason}\n`,
      stream: createStream({
        host,
        signal,
        from,
        feed,
        filter: createFilter(query, credential, this.toolOf),
        heartbeatMs,
        retryMs,
        stallMs,
        ended: () => {
          const left = this.openOf(id) - 1;
          if (left <= 0) this.open.delete(id);
          else this.open.set(id, left);
          this.total -= 1;
          leave();
        },
      }),
    };
  }

  private openOf(caller: string): number {
    return this.open.get(caller) ?? 0;
  }

  /** Throws TOO_MANY_STREAMS if the key or this process has reached its maximum number of streams. */
  private assertCapacity(credential: Credential): void {
    const { key } = credential;
    const { maxStreamsPerKey, maxStreams } = this.limits;
    const held = this.openOf(callerId(credential));
    if (held < maxStreamsPerKey && this.total < maxStreams) return;
    const reason =
      held >= maxStreamsPerKey
        ? `the key "${key.name}" has ${held} open streams, which is the limit`
        : `this process has ${this.total} open streams, which is the limit`;
    throw new Refusal("TOO_MANY_STREAMS", `${reason}; close one, or poll GET /v1/events/page`, {
      headers: { "Retry-After": "5" },
    });
  }
}

/**
 * Returns the Last-Event-ID of a reconnecting client. Throws VALIDATION_FAILED if it is not a sequence number, because
 * the client would otherwise silently miss events.
 */
function lastEventId(headers: Headers): number | null {
  const id = headers.get("last-event-id");
  if (id === null || id === "") return null;
  if (/^(?:-1|\d{1,16})$/.test(id) && Number.isSafeInteger(Number(id))) return Number(id);
  throw new Refusal(
    "VALIDATION_FAILED",
    `the Last-Event-ID "${id.slice(0, 40)}" is not a sequence number of the ledger`,
    {
      errors: [{ parameter: "Last-Event-ID", detail: "the id of an event of this ledger" }],
    },
  );
}

function checkAgent({ agent_id, agent }: EventsQuery): void {
  if (agent_id !== undefined && agent !== undefined && agent_id !== agent)
    throw new Refusal("VALIDATION_FAILED", "`agent` and `agent_id` are the same filter; send one of them", {
      errors: [{ parameter: "agent", detail: "same as agent_id" }],
    });
}

function acceptsStream(accept: string | null): boolean {
  const types = (accept ?? "*/*").split(",").map((part) => part.split(";")[0]?.trim().toLowerCase());
  return types.some((type) => type === "text/event-stream" || type === "*/*" || type === "text/*");
}
