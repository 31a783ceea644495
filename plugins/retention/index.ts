/** Erases the content of actions: one action, all matching actions, and each kind of data after its retention period. */
import { Type, type Static } from "@sinclair/typebox";
import { type CoreHost, defineCorePlugin, parseRfc3339 } from "../../src/core.ts";
import { type Credential, defineRoute } from "../../src/plugin.ts";
import { ACTION_RESPONSE, buildActionReply, IdParams } from "../actions/api.ts";
import { createContentFilter, createErasureSubjectFilter, validationError } from "./content-filter.ts";
import { eraseAction, eraseMatching } from "./erase.ts";
import { holdAuditor } from "./hold-audit.ts";
import { selectVisibleHolds } from "./hold-changes.ts";
import { holdRoutes } from "./hold-routes.ts";
import { ERRORS, LEGAL_HOLD_ENTRY, legalHoldState } from "./holds.ts";
import { createRetentionTask } from "./sweep.ts";

const TAG = "actions";

const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  description:
    "Reason for the erasure, such as the number of an erasure request. The ledger keeps it forever, so include no personal data.",
});
const EraseBody = Type.Object({ reason: Reason }, { additionalProperties: false });

const ErasuresBody = Type.Object(
  {
    dry_run: Type.Optional(
      Type.Boolean({ description: "Counts the matching actions and erases nothing. Default: true." }),
    ),
    reason: Type.Optional(Reason),
    until: Type.Optional(Type.String({ format: "date-time", description: "Actions created before." })),
    agent_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: "Actions of this agent." })),
    value: Type.Optional(
      Type.Union([Type.String({ maxLength: 10_000 }), Type.Number(), Type.Boolean(), Type.Null()], {
        description:
          "Actions that contain exactly this value in `params`, `context` or `result`. A string must match completely.",
      }),
    ),
    pointer: Type.Optional(
      Type.String({
        maxLength: 1000,
        description: "JSON pointer (RFC 6901) to the value, e.g. `/params/customer/email`. Default: anywhere.",
      }),
    ),
    subject: Type.Optional(
      Type.String({
        maxLength: 1000,
        description:
          "A person's identifier, such as an e-mail address: actions that mention it as a whole word, in any case, in `params`, `context`, `meta`, `result`, questions or answers. An address does not match as part of a longer one. It is not recorded.",
      }),
    ),
    before: Type.Optional(
      Type.Integer({ minimum: 0, description: "`next` of an earlier response, to continue there." }),
    ),
  },
  { additionalProperties: false, examples: [{ value: "anna@example.org", pointer: "/params/email" }] },
);

const ErasuresAnswer = Type.Object(
  {
    dry_run: Type.Boolean(),
    looked_at: Type.Integer({ description: "Number of actions scanned, newest first." }),
    matched: Type.Integer({ description: "Matching actions that had not been erased before." }),
    open: Type.Integer({
      description:
        "Matching actions that are open: pending, startable, or started within the last day without a result. They are not erased.",
    }),
    altered: Type.Integer({
      description: "Matching actions that differ from the ledger. They are not erased; run `assent audit`.",
    }),
    held: Type.Integer({ description: "Matching actions that are under a legal hold. They are not erased." }),
    holds: Type.Array(Type.String(), {
      description: "Ids of these holds that the caller may see: `GET /v1/holds/{id}`.",
    }),
    erased: Type.Integer(),
    next: Type.Union([Type.Integer(), Type.Null()], {
      description:
        "Send it as `before` to continue, because one request scans only a few thousand actions. Null when all were scanned.",
    }),
  },
  { additionalProperties: false },
);

const Days = (description: string) =>
  Type.Union([Type.Integer({ minimum: 1, maximum: 36_500 }), Type.Null()], { default: null, description });

const Options = Type.Object(
  {
    request_days: Days(
      "Erases an action's parameters, context and all other content this number of days after its decision. The decision, the approvers and the proof stay. Default: never.",
    ),
    result_days: Days(
      "Erases the results that tools reported this number of days after the decision. Default: together with the request.",
    ),
    meta_days: Days(
      "Erases the metadata of requests this number of days after the decision. Default: together with the request.",
    ),
    questions_days: Days(
      "Erases approvers' questions and the agents' answers this number of days after the decision. Default: together with the request.",
    ),
    release_approvals: Type.Integer({
      default: 1,
      minimum: 1,
      maximum: 10,
      description: "Number of people who must release a legal hold. One person is enough to place it.",
    }),
  },
  { additionalProperties: false, description: "Retention of parameters and results, and legal holds." },
);

export default defineCorePlugin({
  name: "retention",
  needs: ["actions"],
  errors: ERRORS,
  records: { legal_hold: LEGAL_HOLD_ENTRY },
  folds: [legalHoldState],
  auditors: [() => holdAuditor],
  options: Options,
  setup(host, options) {
    const sweeps = createRetentionTask(host, options);
    return {
      routes: [...erasureRoutes(host), ...holdRoutes(host, TAG, options.release_approvals)],
      start: async () => sweeps.start(),
      stop: () => sweeps.stop(),
    };
  },
});

function erasureRoutes(host: CoreHost) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/erase",
      tag: TAG,
      summary: "Erase the content of an action",
      scope: "actions:erase",
      params: IdParams,
      body: EraseBody,
      description:
        "Permanently erases `params`, `context`, `meta`, `result`, their hash and their salt from the store, and records who did so and why. The decision, its entries and their proofs remain. A repeated request changes nothing.",
      responses: { 200: ACTION_RESPONSE },
      errors: ["ACTION_NOT_FOUND", ERRORS.open, ERRORS.held, "RECORD_ALTERED"],
      handle: async ({ credential, params, body }) =>
        buildActionReply(host, await eraseAction(host, credential, params.id, body.reason), credential),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/erasures",
      tag: TAG,
      summary: "Count or erase all matching actions",
      scope: "actions:erase",
      body: ErasuresBody,
      description:
        "Send at least one of `until`, `agent_id`, `value` and `subject`; an action must match all of them. To erase, send `dry_run: false` and a `reason`.",
      responses: { 200: { description: "The counts.", schema: ErasuresAnswer } },
      async handle({ credential, body, signal }) {
        const dry_run = body.dry_run ?? true;
        const count = await eraseMatching(
          host,
          credential,
          { ...erasureFilter(body), reason: requireReason(body) },
          signal,
        );
        return {
          status: 200,
          json: { dry_run, ...count, holds: await visibleHoldIds(host, credential, count.holds) },
        };
      },
    }),
  ];
}

async function visibleHoldIds(
  host: CoreHost,
  credential: Pick<Credential, "limits">,
  ids: readonly string[],
): Promise<string[]> {
  const holds = await host.state(legalHoldState);
  const named = ids.map((id) => ({ action: null, agent: null, ...holds.get(id), id }));
  return (await selectVisibleHolds(host.storage, credential, named)).map(({ id }) => id);
}

type ErasuresBody = Static<typeof ErasuresBody>;

function requireReason({ dry_run = true, reason }: ErasuresBody): string | null {
  if (dry_run) return null;
  if (reason === undefined)
    throw validationError("/reason", "is required with `dry_run: false`; it is recorded with each erasure");
  return reason;
}

function erasureFilter({ until, agent_id, value, pointer, subject, before }: ErasuresBody) {
  if (until === undefined && agent_id === undefined && value === undefined && subject === undefined)
    throw validationError("", "send at least one of `until`, `agent_id`, `value` and `subject`");
  if (value !== undefined && subject !== undefined)
    throw validationError("/subject", "cannot be combined with `value`");
  if (pointer !== undefined && value === undefined) throw validationError("/value", "is required with `pointer`");
  return {
    until: until === undefined ? null : parseRfc3339(until),
    agent_id: agent_id ?? null,
    matchesContent:
      subject !== undefined
        ? createErasureSubjectFilter(subject)
        : value === undefined
          ? null
          : createContentFilter(value, pointer),
    cause: subject === undefined ? ("asked" as const) : ("subject" as const),
    before: before ?? null,
  };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    retention: typeof erasureRoutes | typeof holdRoutes;
  }
}
