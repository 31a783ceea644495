/** Serves the ledger as events: as server-sent events, or in pages by sequence number. */
import { Type } from "@sinclair/typebox";
import { defineCorePlugin } from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, type Reply, type RequestContext } from "../../src/plugin.ts";
import { createFeed } from "./feed.ts";
import { createFilter, toolLookup } from "./filter.ts";
import { poll } from "./poll.ts";
import { Event, EventPage, eventsQuery, pageQuery, Position, type EventsQuery, type PageQuery } from "./schemas.ts";
import { createStream } from "./stream.ts";

const Options = Type.Object(
  {
    max_streams_per_key: Type.Integer({
      default: 20,
      minimum: 1,
      maximum: 100_000,
      description: "Maximum number of open streams for one API key.",
    }),
    max_streams: Type.Integer({
      default: 1000,
      minimum: 1,
      maximum: 1_000_000,
      description: "Maximum number of open streams in this process.",
    }),
    heartbeat_seconds: Type.Number({
      default: 15,
      minimum: 0.05,
      maximum: 300,
      description: "Interval of comments in a stream without events, which keep proxies from closing the connection.",
    }),
    retry_milliseconds: Type.Integer({
      default: 1000,
      minimum: 1,
      maximum: 600_000,
      description: "Time that a client waits before it reconnects.",
    }),
    stall_seconds: Type.Number({
      default: 30,
      minimum: 0.05,
      maximum: 3600,
      description:
        "A client that does not read a batch within this time is disconnected. It can resume by sequence number.",
    }),
  },
  { additionalProperties: false },
);

type StreamRequest = RequestContext<unknown, EventsQuery, undefined, Credential>;
type PageRequest = RequestContext<unknown, PageQuery, undefined, Credential>;

const STREAM = [
  "Server-sent events. An event of the ledger has no `event` field; its `data` is an `Event`, and its `id` is the ledger sequence, so that `Last-Event-ID` resumes without a gap.",
  'The first block, and one after a while in which the filter let nothing through, is `event: position` with the data `{"type":"position","seq":41}`: everything up to this sequence was there before, or was looked at. It carries the same `id`, so that a connection that is cut before its first event loses nothing. Silence is broken by comments.',
].join("\n\n");

export default defineCorePlugin({
  name: "events",
  options: Options,
  setup(host, options) {
    const toolOf = toolLookup(host);
    const open = new Map<string, number>();
    let total = 0;
    const feed = createFeed(host);

    function stream(query: EventsQuery, who: Credential, from: number): Reply {
      const held = open.get(who.key.id) ?? 0;
      if (held >= options.max_streams_per_key || total >= options.max_streams) {
        const why =
          held >= options.max_streams_per_key
            ? `the key "${who.key.name}" has ${held} open streams, as many as it may`
            : `this process has ${total} open streams, as many as it takes`;
        throw new Refusal("TOO_MANY_STREAMS", `${why}; close one, or read with Accept: application/json`, {
          headers: { "Retry-After": "5" },
        });
      }
      open.set(who.key.id, held + 1);
      total += 1;
      const leave = feed.join();
      return {
        status: 200,
        headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
        stream: createStream({
          host,
          credential: who,
          from,
          feed,
          filter: createFilter(query, who, toolOf),
          heartbeatMs: options.heartbeat_seconds * 1000,
          retryMs: options.retry_milliseconds,
          stallMs: options.stall_seconds * 1000,
          ended() {
            const left = (open.get(who.key.id) ?? 1) - 1;
            if (left === 0) open.delete(who.key.id);
            else open.set(who.key.id, left);
            total -= 1;
            leave();
          },
        }),
      };
    }

    /** Resolves to the size of the ledger. Throws if it does not contain the last event that the client has received. */
    async function sizeAfter(last: number | undefined): Promise<number> {
      const { size } = await host.ledger.head();
      if (last !== undefined && last >= size)
        throw new Refusal(
          "INVALID_RANGE",
          `there is no event ${last} yet: the newest is ${size - 1}; the store may have been replaced by an older one`,
        );
      return size;
    }

    async function events({ query, credential, headers }: StreamRequest): Promise<Reply> {
      checkAgent(query);
      if (!acceptsStream(headers.get("accept")))
        throw new Refusal(
          "NOT_ACCEPTABLE",
          "this route is a stream of text/event-stream; GET /v1/events/page returns the same events as JSON",
        );
      const last = lastEventId(headers) ?? query.after;
      const size = await sizeAfter(last);
      return stream(query, credential, last === undefined ? size : last + 1);
    }

    async function page({ query, credential, reserveResponseBytes: holdResponse }: PageRequest): Promise<Reply> {
      checkAgent(query);
      const size = await sizeAfter(query.after);
      return {
        status: 200,
        json: await poll(host, query, createFilter(query, credential, toolOf), size, holdResponse),
      };
    }

    return {
      routes: [
        defineRoute({
          method: "GET",
          path: "/v1/events",
          tag: "events",
          summary: "Follow the ledger",
          scope: "events:read",
          query: eventsQuery(host.entryTypes),
          headers: Type.Object({
            "Last-Event-ID": Type.Optional(
              Type.String({
                description:
                  "Id of the last event that a reconnecting client has received; takes precedence over `after`.",
              }),
            ),
          }),
          description: STREAM,
          responses: {
            200: {
              description: "A stream without an end. The schema is that of each event's `data`.",
              contentType: "text/event-stream",
              schema: Type.Union([Event, Position]),
            },
          },
          errors: ["TOO_MANY_STREAMS", "INVALID_RANGE", "NOT_ACCEPTABLE"],
          handle: events,
        }),
        defineRoute({
          method: "GET",
          path: "/v1/events/page",
          tag: "events",
          summary: "Read a page of the ledger's events",
          scope: "events:read",
          query: pageQuery(host.entryTypes),
          description:
            "What `GET /v1/events` streams, for pollers: ask again with `after` set to `next_after`. `events` may be empty before the head, where few are for this key.",
          responses: { 200: { description: "The page.", schema: EventPage } },
          errors: ["INVALID_RANGE"],
          handle: page,
        }),
      ],
    };
  },
});

/**
 * Returns the Last-Event-ID of a reconnecting client. Throws VALIDATION_FAILED for anything but a sequence number, because
 * the client would otherwise silently miss events.
 */
function lastEventId(headers: Headers): number | null {
  const id = headers.get("last-event-id");
  if (id === null || id === "") return null;
  if (/^(?:-1|\d{1,16})$/.test(id) && Number.isSafeInteger(Number(id))) return Number(id);
  throw new Refusal("VALIDATION_FAILED", `the Last-Event-ID "${id.slice(0, 40)}" is not a ledger sequence`, {
    errors: [{ parameter: "Last-Event-ID", detail: "the id of an event of this ledger" }],
  });
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
