/** Routes that place, list and release legal holds. */
import { Type, type Static } from "@sinclair/typebox";
import { closed, type CoreHost, orNull, readIdempotencyKey, REPLAYED_HEADERS, timeSchema } from "../../src/core.ts";
import { type Credential, defineRoute, toRfc3339 } from "../../src/plugin.ts";
import { selectVisibleHolds, findVisibleHold, placeHold, readSubject, releaseHold } from "./hold-changes.ts";
import { validationError } from "./content-filter.ts";
import { ERRORS, type LegalHold, legalHoldState, listActiveHolds } from "./holds.ts";

/** Scopes of people who place holds, erase or audit. Agents cannot read holds. */
const READERS = ["holds:write", "actions:erase", "provenance:read"] as const;
const ROUTE = "POST /v1/holds";
const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  description: "The ledger keeps it forever, so include no personal data.",
});

const HoldBody = Type.Object(
  {
    reason: Reason,
    action: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "Id of the action to keep." })),
    agent: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        format: "name",
        description: "Keeps the actions of this agent, including later ones, in any spelling of its name.",
      }),
    ),
    subject: Type.Optional(
      Type.String({
        maxLength: 1000,
        description:
          "A person's identifier, such as an e-mail address: keeps the actions that mention it, including later ones, as in `POST /v1/erasures`. The ledger contains only a salted commitment. The store keeps the identifier until the hold is released.",
      }),
    ),
  },
  {
    ...closed,
    description: "Send exactly one of `action`, `agent` and `subject`.",
    examples: [{ reason: "case 4711", agent: "billing" }],
  },
);

const ReleaseBody = Type.Object({ reason: Reason }, { ...closed, examples: [{ reason: "case 4711 was settled" }] });
const HoldParams = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 64, description: "Legal hold." }) },
  closed,
);

const HoldRecord = Type.Object(
  {
    id: Type.String(),
    status: Type.Union([Type.Literal("active"), Type.Literal("released")]),
    scope: Type.Union([Type.Literal("action"), Type.Literal("agent"), Type.Literal("subject")]),
    action: orNull(Type.String({ description: "The action that is kept." })),
    agent: orNull(Type.String({ description: "The agent whose actions are kept." })),
    subject: orNull(
      Type.String({
        description: "The person's identifier, for keys with `holds:write`; null once the hold is released.",
      }),
    ),
    reason: Type.String(),
    placed_at: timeSchema("When it was placed."),
    placed_by: Type.String({ description: "Principal of the user or key that placed the hold." }),
    release: Type.Object(
      {
        needed: Type.Integer({ description: "Number of people who must request to release the hold." }),
        asked: Type.Array(
          Type.Object(
            {
              by: Type.String({ description: "Principal." }),
              at: timeSchema("Time of the request."),
              reason: Type.String(),
            },
            closed,
          ),
          { description: "People who requested the release, in order." },
        ),
      },
      closed,
    ),
    released_at: orNull(timeSchema("When it was released.")),
    seq: Type.Integer({ description: "Sequence number of the ledger entry that placed the hold." }),
  },
  { title: "LegalHold", ...closed },
);
type HoldRecord = Static<typeof HoldRecord>;

const HoldList = Type.Object(
  { holds: Type.Array(HoldRecord, { description: "Active legal holds, oldest first." }) },
  closed,
);

/** @param needed the number of people who must release a hold */
export function holdRoutes(host: CoreHost, tag: string, needed: number) {
  const response = { description: "The legal hold.", schema: HoldRecord };
  return [
    defineRoute({
      method: "GET",
      path: "/v1/holds",
      tag,
      summary: "List active legal holds",
      description: "A member of a group with limits sees only holds on actions and agents within the limits.",
      scope: READERS,
      responses: { 200: { description: "The active legal holds.", schema: HoldList } },
      async handle({ credential }) {
        const active = listActiveHolds(await host.state(legalHoldState));
        const visible = await selectVisibleHolds(host.storage, credential, active);
        return {
          status: 200,
          json: { holds: await Promise.all(visible.map((hold) => renderHold(host, needed, credential, hold))) },
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/holds",
      tag,
      summary: "Place a legal hold",
      scope: "holds:write",
      body: HoldBody,
      idempotent: true,
      description:
        "After the response, no process erases what the hold covers, whether by id, by a search or by retention. A running erasure skips the covered actions that it has not erased yet.",
      responses: {
        200: { ...response, description: "An earlier request with this Idempotency-Key placed the hold." },
        201: { ...response, description: "The hold is active." },
      },
      errors: [
        "AGENT_MISMATCH",
        "ACTION_NOT_FOUND",
        "ACTION_ERASED",
        "AGENT_NOT_FOUND",
        "SCOPE_ESCALATION",
        ERRORS.tooMany,
        "IDEMPOTENCY_CONFLICT",
      ],
      async handle({ body, headers, credential }) {
        const { reason, action = null, agent = null, subject = null } = body;
        if ([action, agent, subject].filter((scope) => scope !== null).length !== 1)
          throw validationError("", "send exactly one of `action`, `agent` and `subject`");
        const key = readIdempotencyKey(headers);
        // Do not store a hash of the body: anyone who can read the store could test guesses of the person's identifier
        // against it.
        const call = key === null ? null : { key, route: ROUTE, bodyHash: "" };
        const { hold, replayed } = await placeHold(host, credential, { reason, action, agent, subject }, call);
        return {
          status: replayed ? 200 : 201,
          json: await renderHold(host, needed, credential, hold),
          headers: { Location: `/v1/holds/${hold.id}`, ...(replayed ? REPLAYED_HEADERS : {}) },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/holds/:id",
      tag,
      summary: "Read a legal hold",
      scope: READERS,
      params: HoldParams,
      responses: { 200: response },
      errors: [ERRORS.notFound],
      handle: async ({ params: { id }, credential }) => ({
        status: 200,
        json: await renderHold(
          host,
          needed,
          credential,
          await findVisibleHold(host.storage, await host.state(legalHoldState), credential, id),
        ),
      }),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/holds/:id/release",
      tag,
      summary: "Release a legal hold, or request to release it",
      scope: "holds:write",
      params: HoldParams,
      body: ReleaseBody,
      description:
        "If the configuration requires several people (`retention.release_approvals`), the hold stays active until enough of them have requested it. People are counted as for approvals.",
      responses: {
        200: { ...response, description: "Released." },
        202: { ...response, description: "The hold is still active, because more people must request it." },
      },
      errors: ["AGENT_MISMATCH", ERRORS.notFound, ERRORS.released, "ALREADY_VOTED"],
      async handle({ params, body, credential }) {
        const hold = await releaseHold(host, needed, credential, params.id, body.reason);
        return {
          status: hold.released_at === null ? 202 : 200,
          json: await renderHold(host, needed, credential, hold),
        };
      },
    }),
  ];
}

async function renderHold(
  host: CoreHost,
  needed: number,
  credential: Credential,
  hold: LegalHold,
): Promise<HoldRecord> {
  const { id, action, agent, reason, placed_at, placed_by, releases, released_at, seq } = hold;
  return {
    id,
    status: released_at === null ? "active" : "released",
    scope: action !== null ? "action" : agent !== null ? "agent" : "subject",
    action,
    agent,
    subject: credential.hasScope("holds:write") ? await readSubject(host.documents, hold) : null,
    reason,
    placed_at: toRfc3339(placed_at),
    placed_by: placed_by.principal,
    release: {
      needed,
      asked: releases.map(({ by, at, comment }) => ({ by: by.principal, at: toRfc3339(at), reason: comment })),
    },
    released_at: released_at === null ? null : toRfc3339(released_at),
    seq,
  };
}
