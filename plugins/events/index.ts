/** The ledger as a stream of events: server-sent, or polled by sequence. */
import { setImmediate } from "node:timers/promises";
import { Type } from "@sinclair/typebox";
import { Refusal } from "../../src/contract/errors.ts";
import type { Credential, Host } from "../../src/contract/host.ts";
import { defineRoute, type Reply, type RequestContext } from "../../src/contract/resource.ts";
import { withoutGap } from "../../src/contract/storage.ts";
import { definePlugin } from "../../src/plugin.ts";
import { createFeed, PAGE, type Feed } from "./feed.ts";
import { createFilter, eventOf, toolLookup, type ToolOf } from "./filter.ts";
import { EventPage, eventsQuery, type Event, type EventsQuery } from "./schemas.ts";
import { createStream } from "./stream.ts";

const Options = Type.Object(
  {
    max_streams_per_key: Type.Integer({
      default: 20,
      minimum: 1,
      maximum: 100_000,
      description: "Open streams of one API key.",
    }),
    max_streams: Type.Integer({
      default: 1000,
      minimum: 1,
      maximum: 1_000_000,
      description: "Open streams of this process.",
    }),
    heartbeat_seconds: Type.Number({
      default: 15,
      minimum: 0.05,
      maximum: 300,
      description: "A comment after so long without an event keeps proxies from closing the connection.",
    }),
    retry_milliseconds: Type.Integer({
      default: 1000,
      minimum: 1,
      maximum: 600_000,
      description: "How long a client waits before it connects again.",
    }),
    stall_seconds: Type.Number({
      default: 30,
      minimum: 0.05,
      maximum: 3600,
      description: "A client that leaves a batch unread for so long is cut off; it resumes by sequence.",
    }),
  },
  { additionalProperties: false },
);

type EventsRequest = RequestContext<unknown, EventsQuery, undefined, Credential>;

/** Entries that one poll looks at: a narrow filter over a long ledger must not keep others waiting. */
const MAX_LOOKED_AT = 10 * PAGE;

export default definePlugin({
  name: "events",
  options: Options,
  setup(host, options) {
    const toolOf = toolLookup(host);
    const open = new Map<string, number>();
    let total = 0;
    let feed: Feed | null = null;

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
      return {
        status: 200,
        headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
        stream: createStream({
          host,
          credential: who,
          from,
          feed: feed as Feed,
          filter: createFilter(query, who, toolOf),
          heartbeatMs: options.heartbeat_seconds * 1000,
          retryMs: options.retry_milliseconds,
          stallMs: options.stall_seconds * 1000,
          ended() {
            const left = (open.get(who.key.id) ?? 1) - 1;
            if (left === 0) open.delete(who.key.id);
            else open.set(who.key.id, left);
            total -= 1;
          },
        }),
      };
    }

    async function events({ query, credential, headers }: EventsRequest): Promise<Reply> {
      if (query.agent_id !== undefined && query.agent !== undefined && query.agent_id !== query.agent) {
        throw new Refusal("VALIDATION_FAILED", "`agent` and `agent_id` are the same filter; send one of them", {
          errors: [{ parameter: "agent", detail: "same as agent_id" }],
        });
      }
      const last = lastEventId(headers) ?? query.after;
      if (wantsJson(headers.get("accept"))) return poll(host, query, credential, last ?? -1, toolOf);
      if (query.limit !== undefined)
        throw new Refusal("VALIDATION_FAILED", "a stream takes no limit; poll with Accept: application/json", {
          errors: [{ parameter: "limit", detail: "only with Accept: application/json" }],
        });
      const { size } = await host.ledger.head();
      if (last !== undefined && last >= size)
        throw new Refusal(
          "INVALID_RANGE",
          `there is no event ${last} yet: the newest is ${size - 1}; was the store replaced by an older one?`,
        );
      return stream(query, credential, last === undefined ? size : last + 1);
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
              Type.String({ description: "What a client that reconnects has seen last; wins over `after`." }),
            ),
          }),
          description:
            "Server-sent events by default: unnamed, `id` is the ledger sequence, so that `Last-Event-ID` resumes without a gap. With `Accept: application/json` one page, for pollers.",
          responses: {
            200: {
              description: "A page of events; or, unless JSON alone is accepted, a stream.",
              schema: EventPage,
              also: ["text/event-stream"],
            },
          },
          errors: ["TOO_MANY_STREAMS", "INVALID_RANGE", "NOT_ACCEPTABLE"],
          handle: events,
        }),
      ],
      async start() {
        feed = createFeed(host);
      },
      async stop() {
        feed?.stop();
      },
    };
  },
});

async function poll(
  host: Host,
  query: EventsQuery,
  credential: Credential,
  after: number,
  toolOf: ToolOf,
): Promise<Reply> {
  const filter = createFilter(query, credential, toolOf);
  const limit = query.limit ?? 100;
  const { size } = await host.ledger.head();
  if (after >= size)
    throw new Refusal(
      "INVALID_RANGE",
      `there is no event ${after} yet: the newest is ${size - 1}; was the store replaced by an older one?`,
    );
  const events: Event[] = [];
  let bytes = 0;
  let full = false;
  let next = after + 1;
  const end = Math.min(size, next + MAX_LOOKED_AT);
  for (let pages = 0; next < end && events.length < limit && !full; pages++) {
    // An embedded store reads at once: a poll of others' entries would hold up everybody for all its pages.
    if (pages > 0) await setImmediate();
    const to = Math.min(end, next + PAGE);
    for (const row of withoutGap(await host.storage.entries(next, to), next, to)) {
      if (events.length === limit) break;
      const passes = await filter.passes(row);
      bytes += passes ? row.bytes.length : 0;
      // A page holds one event at least.
      if (bytes > host.config.server.max_page_bytes && events.length > 0) {
        full = true;
        break;
      }
      if (passes) events.push(eventOf(row));
      next = row.seq + 1;
    }
  }
  return { status: 200, json: { events, next_after: next - 1, head: size - 1 } };
}

/**
 * What a client that reconnects sends. Anything that is no number of ours is refused, or the client would silently miss
 * events.
 */
function lastEventId(headers: Headers): number | null {
  const id = headers.get("last-event-id");
  if (id === null || id === "") return null;
  if (/^\d{1,16}$/.test(id) && Number.isSafeInteger(Number(id))) return Number(id);
  throw new Refusal("VALIDATION_FAILED", `the Last-Event-ID "${id.slice(0, 40)}" is not a ledger sequence`, {
    errors: [{ parameter: "Last-Event-ID", detail: "the id of an event of this ledger" }],
  });
}

function wantsJson(accept: string | null): boolean {
  const types = (accept ?? "*/*").split(",").map((part) => part.split(";")[0]?.trim().toLowerCase());
  if (types.some((type) => type === "text/event-stream" || type === "*/*" || type === "text/*")) {
    return types.includes("application/json") && !types.includes("text/event-stream");
  }
  if (types.includes("application/json") || types.includes("application/*")) return true;
  throw new Refusal("NOT_ACCEPTABLE", "events come as text/event-stream or as application/json; accept one of them");
}
