/** Serves the ledger as events: as server-sent events, or in pages by sequence number. */
import { Type } from "@sinclair/typebox";
import { defineCorePlugin, type EntryType } from "../../src/core.ts";
import { defineRoute } from "../../src/plugin.ts";
import { LedgerEvents } from "./ledger-events.ts";
import { Event, EventPage, eventsQuery, pageQuery, Position } from "./schemas.ts";

const Options = Type.Object(
  {
    max_streams_per_key: Type.Integer({
      default: 20,
      minimum: 1,
      maximum: 100_000,
      description: "Maximum number of open streams of one API key or user.",
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
      // The console and the clients take a stream without data for broken after 60 s.
      maximum: 30,
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

const STREAM_DESCRIPTION = [
  "Server-sent events. An event of the ledger has no `event` field. Its `data` is an `Event`, and its `id` is the sequence number in the ledger, so that `Last-Event-ID` resumes without a gap.",
  'The stream begins with the block `event: position` and the data `{"type":"position","seq":41}`: events after this sequence number follow. The block is sent again if the filter matches no event for a heartbeat interval. Its `id` is the same number, so that a client whose connection is cut before the first event loses nothing. If there are no new entries, the service sends comments as heartbeats.',
].join("\n\n");

export default defineCorePlugin({
  name: "events",
  needs: ["actions"],
  options: Options,
  setup(host, options) {
    const events = new LedgerEvents(host, {
      maxStreamsPerKey: options.max_streams_per_key,
      maxStreams: options.max_streams,
      heartbeatMs: options.heartbeat_seconds * 1000,
      retryMs: options.retry_milliseconds,
      stallMs: options.stall_seconds * 1000,
    });
    return { routes: [streamRoute(events, host.entryTypes), pageRoute(events, host.entryTypes)] };
  },
});

function streamRoute(events: LedgerEvents, types: readonly EntryType[]) {
  return defineRoute({
    method: "GET",
    path: "/v1/events",
    tag: "events",
    summary: "Follow the ledger",
    scope: "events:read",
    query: eventsQuery(types),
    headers: Type.Object({
      "Last-Event-ID": Type.Optional(
        Type.String({
          description: "Id of the last event that a reconnecting client has received; takes precedence over `after`.",
        }),
      ),
    }),
    description: STREAM_DESCRIPTION,
    responses: {
      200: {
        description: "An endless stream. The schema describes the `data` of each event.",
        contentType: "text/event-stream",
        schema: Type.Union([Event, Position]),
      },
    },
    errors: ["TOO_MANY_STREAMS", "INVALID_RANGE", "NOT_ACCEPTABLE"],
    handle: (context) => events.follow(context),
  });
}

function pageRoute(events: LedgerEvents, types: readonly EntryType[]) {
  return defineRoute({
    method: "GET",
    path: "/v1/events/page",
    tag: "events",
    summary: "Read a page of the ledger's events",
    scope: "events:read",
    query: pageQuery(types),
    description:
      "Returns the events that `GET /v1/events` streams, for clients that poll. Send the next request with `after` set to `next_after`. `events` may be empty before the head is reached, if this key sees few events.",
    responses: { 200: { description: "The page.", schema: EventPage } },
    errors: ["INVALID_RANGE"],
    handle: (context) => events.page(context),
  });
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    events: typeof streamRoute | typeof pageRoute;
  }
}
