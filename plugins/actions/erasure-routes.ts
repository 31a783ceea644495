/** Routes that erase: one action, or all that match. */
import { Type, type Static } from "@sinclair/typebox";
import { defineRoute, type Host, type Route } from "../../src/plugin.ts";
import { parseRfc3339 } from "../../src/core.ts";
import { eraseAction, eraseMatching } from "./erase-actions.ts";
import { actionReply, ACTION_RESPONSE } from "./action-record.ts";
import { IdParams } from "./schemas.ts";
import { createContentFilter, validationError } from "./content-filter.ts";

const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "Why, e.g. the number of a request. It stands in the ledger forever: write nothing personal.",
});
const EraseBody = Type.Object({ reason: Reason }, { additionalProperties: false });

const ErasuresBody = Type.Object(
  {
    dry_run: Type.Optional(
      Type.Boolean({ description: "Counts what matches and erases nothing. True unless it is sent as false." }),
    ),
    reason: Type.Optional(Reason),
    until: Type.Optional(Type.String({ format: "date-time", description: "Actions created before." })),
    agent_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: "Actions of this agent." })),
    value: Type.Optional(
      Type.Union([Type.String({ maxLength: 10_000 }), Type.Number(), Type.Boolean(), Type.Null()], {
        description:
          "Actions that hold exactly this value in `params`, `context` or `result`: the whole of a text, not a part of it.",
      }),
    ),
    pointer: Type.Optional(
      Type.String({
        maxLength: 1000,
        description: "Where the value must stand, as RFC 6901, e.g. `/params/customer/email`; anywhere when absent.",
      }),
    ),
    before: Type.Optional(
      Type.Integer({ minimum: 0, description: "`next` of an earlier answer: goes on where it ended." }),
    ),
  },
  { additionalProperties: false, examples: [{ value: "anna@example.org", pointer: "/params/email" }] },
);

const ErasuresAnswer = Type.Object(
  {
    dry_run: Type.Boolean(),
    looked_at: Type.Integer({ description: "Actions that were looked at, newest first." }),
    matched: Type.Integer({ description: "Those that match and were not erased before." }),
    open: Type.Integer({
      description:
        "Those of them that are not over: pending, with a permit that may still be used, or started within a day. They stay.",
    }),
    altered: Type.Integer({
      description: "Those of them that are not in the store as the ledger says. They stay: look at `assent audit`.",
    }),
    erased: Type.Integer(),
    next: Type.Union([Type.Integer(), Type.Null()], {
      description: "Where to go on (`before`): one request looks at some thousands; null when all were looked at.",
    }),
  },
  { additionalProperties: false },
);

export function erasureRoutes(host: Host, tag: string): Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/erase",
      tag,
      summary: "Erase what was asked and reported",
      scope: "actions:erase",
      params: IdParams,
      body: EraseBody,
      description:
        "Takes `params`, `context`, `result`, their hash and their salt out of the store, for good, and records who did and why. The decision, its entries and their proofs stay. Again, it changes nothing.",
      responses: { 200: ACTION_RESPONSE },
      errors: ["ACTION_NOT_FOUND", "ACTION_OPEN", "RECORD_ALTERED"],
      handle: async ({ credential, params, body }) =>
        actionReply(host, await eraseAction(host, credential, params.id, body.reason), credential),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/erasures",
      tag,
      summary: "Count or erase all actions that match",
      scope: "actions:erase",
      body: ErasuresBody,
      description:
        "At least one of `until`, `agent_id` and `value` says which; all that are sent must hold. Erases with `dry_run: false` and a `reason` alone.",
      responses: { 200: { description: "How many.", schema: ErasuresAnswer } },
      async handle({ credential, body, signal }) {
        const dry_run = body.dry_run ?? true;
        const count = await eraseMatching(
          host,
          credential,
          { ...erasureFilter(body), reason: requireReason(body) },
          signal,
        );
        return { status: 200, json: { dry_run, ...count } };
      },
    }),
  ];
}

type ErasuresBody = Static<typeof ErasuresBody>;

function requireReason({ dry_run = true, reason }: ErasuresBody): string | null {
  if (dry_run) return null;
  if (reason === undefined) throw validationError("/reason", "say why; it is recorded with each erasure");
  return reason;
}

function erasureFilter({ until, agent_id, value, pointer, before }: ErasuresBody) {
  if (until === undefined && agent_id === undefined && value === undefined)
    throw validationError("", "say which actions: send `until`, `agent_id` or `value`, or several of them");
  if (pointer !== undefined && value === undefined)
    throw validationError("/value", "say which value stands at the pointer");
  return {
    until: until === undefined ? null : parseRfc3339(until),
    agent_id: agent_id ?? null,
    matchesContent: value === undefined ? null : createContentFilter(value, pointer),
    before: before ?? null,
  };
}
