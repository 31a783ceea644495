import { Type, type Static } from "@sinclair/typebox";
import type { EntryType } from "../../src/core.ts";
import { LedgerEntry } from "../actions/api.ts";

function filters(types: readonly EntryType[], withoutAfter: string) {
  const list = types.map((type) => type.replaceAll(".", "\\.")).join("|");
  return {
    after: Type.Optional(
      Type.Integer({
        minimum: -1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: `Only events with a greater sequence number; -1 for all events. ${withoutAfter}`,
      }),
    ),
    type: Type.Optional(
      Type.String({
        pattern: `^(?:${list})(?:,(?:${list}))*$`,
        maxLength: 2000,
        description: `one or more of ${types.join(", ")}, separated by commas`,
      }),
    ),
    agent_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    agent: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: "Same as `agent_id`." })),
    tool: Type.Optional(
      Type.String({ minLength: 1, maxLength: 256, description: "Events of actions with this tool." }),
    ),
    action_id: Type.Optional(Type.String({ format: "uuid" })),
  };
}

/** @param types all entry types */
export function eventsQuery(types: readonly EntryType[]) {
  const fields = filters(types, "Default: the stream starts with the next event. `Last-Event-ID` takes precedence.");
  return Type.Object(fields, { additionalProperties: false });
}
export type EventsQuery = Static<ReturnType<typeof eventsQuery>>;

/** @param types all entry types */
export function pageQuery(types: readonly EntryType[]) {
  return Type.Object(
    {
      ...filters(types, "Default: from the beginning."),
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Maximum number of events on a page." }),
      ),
    },
    { additionalProperties: false },
  );
}
export type PageQuery = Static<ReturnType<typeof pageQuery>>;

const EXAMPLE = {
  seq: 41,
  hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  type: "execution",
  at: "2026-01-31T12:00:00.000Z",
  action_id: "019346a0-0000-7000-8000-000000000000",
  entry: {
    type: "execution",
    v: 1,
    seq: 41,
    action_id: "019346a0-0000-7000-8000-000000000000",
    at: "2026-01-31T12:00:00.000Z",
    agent_id: "support-bot",
    commitment: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
    phase: "start",
    by: {
      key_id: "019346a0-0000-7000-8000-000000000001",
      principal: "user:019346a0-0000-7000-8000-000000000000",
      agent_id: "support-bot",
      owner: "user:019346a0-0000-7000-8000-000000000000",
    },
    permit: null,
    attempt: "0f1d7b6c7c0a4cf1a3c3a6f5f0ed5a1df8c2be9a6b0f0f1f3b6f4f7d3fbb8a5e",
    success: null,
    result: null,
    comment: null,
    status: "executing",
  },
};

export const Event = Type.Object(
  {
    seq: Type.Integer({ description: "Sequence number in the ledger, which is also the SSE `id`." }),
    hash: Type.String({ description: "Leaf hash, hex." }),
    type: Type.String({ description: "Type of the entry; `<plugin>:<type>` if a plugin recorded it." }),
    at: Type.String({ format: "date-time" }),
    action_id: Type.Union([Type.String({ format: "uuid" }), Type.Null()], {
      description:
        "Id of the action that the entry is about; null for other entries, such as changes of keys, users and policies.",
    }),
    entry: LedgerEntry,
  },
  { title: "Event", additionalProperties: false, examples: [EXAMPLE] },
);
export type Event = Static<typeof Event>;

export const Position = Type.Object(
  {
    type: Type.Literal("position"),
    seq: Type.Integer({
      description:
        "Newest sequence number that the stream has passed, including filtered entries; -1 if there is none.",
    }),
  },
  { title: "Position", additionalProperties: false },
);

export const EventPage = Type.Object(
  {
    events: Type.Array(Event),
    next_after: Type.Integer({ description: "Value of `after` for the next poll." }),
    head: Type.Integer({
      description:
        "Sequence number of the newest event; -1 if there is none. The poll has caught up when `next_after` equals it.",
    }),
  },
  { title: "EventPage", additionalProperties: false, examples: [{ events: [EXAMPLE], next_after: 41, head: 41 }] },
);
export type EventPage = Static<typeof EventPage>;
