/** Routes of plans: submit, list, read, cancel, and vote on the list of their actions. */
import { Type } from "@sinclair/typebox";
import {
  type CoreHost,
  createVotesChallenge,
  decodeSeqCursor,
  type VoteSignature,
  readIdempotencyKey,
  REPLAYED_HEADERS,
  voteDigest,
  type VoteStatement,
} from "../../src/core.ts";
import { type Credential, cutPage, defineRoute, nextLink, Refusal, toRfc3339 } from "../../src/plugin.ts";
import {
  CancelBody,
  createFactReadingHost,
  readVoteStatement,
  requireVoteSigner,
  scheduleExpiry,
  SESSION_HEADER,
  VoteChallenge,
} from "../actions/api.ts";
import { buildPlanReply, PLAN_RESPONSE, readPlanReply, summarizePlan } from "./record.ts";
import * as schema from "./schemas.ts";
import { readRowsOfVisiblePlan, verifyPlan } from "./state.ts";
import { submitPlan } from "./submit.ts";
import { cancelPlan, listPlannedVotes, type PlanVote, voteOnPlan } from "./vote.ts";

/** The documentation of the API lists plans with actions. */
const TAG = "actions";
const LIST_NAME = "plans";
const { ERRORS } = schema;

const PLAN_HEADERS = Type.Object({
  [SESSION_HEADER]: Type.Optional(
    Type.String({ description: "Token of the agent's session, from `POST /v1/agent-sessions`." }),
  ),
});

const VOTE_ERRORS = [
  ERRORS.notFound,
  ERRORS.stopped,
  "SELF_APPROVAL",
  "VOTE_SIGNATURE_REQUIRED",
  "APPROVER_NOT_ELIGIBLE",
  "ALREADY_VOTED",
  "ACTION_NOT_PENDING",
  "APPROVAL_EXPIRED",
  "NO_LONGER_ALLOWED",
  "FACTS_UNAVAILABLE",
  "FACTS_CHANGED",
  "ACTION_ERASED",
  "RECORD_ALTERED",
] as const;

export function planRoutes(host: CoreHost) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/plans",
      tag: TAG,
      summary: "Submit a plan",
      description:
        "Submits several actions of one agent at once, for people who decide on them together. Each is evaluated separately, and the response has the decisions. If one action cannot be submitted, nothing is recorded, and the error names its position.",
      scope: "actions:submit",
      body: schema.PlanBody,
      headers: PLAN_HEADERS,
      queued: true,
      confirmsCredential: true,
      idempotent: true,
      responses: {
        200: { ...PLAN_RESPONSE, headers: { "Idempotency-Replayed": "`true` if the plan already existed." } },
      },
      errors: [
        "AGENT_MISMATCH",
        "AGENT_UNBOUND",
        "IDEMPOTENCY_CONFLICT",
        "ACTION_ERASED",
        ERRORS.notFound,
        "RECORD_ALTERED",
        "TOO_MANY_PENDING",
        "INVALID_SESSION_TOKEN",
        ...host.stepErrors,
      ],
      async handle(context) {
        const { body, credential, headers } = context;
        const call = { headers, idempotencyKey: readIdempotencyKey(headers) };
        const { rows, origin } = await submitPlan(createFactReadingHost(host, context), credential, body, call);
        for (const row of rows) scheduleExpiry(host, row);
        const reply = await buildPlanReply(host, rows, credential, origin === "replayed" ? REPLAYED_HEADERS : {});
        return { ...reply, headers: { ...reply.headers, Location: `/v1/plans/${rows[0]?.plan_id ?? ""}` } };
      },
    }),
    listRoute(host),
    defineRoute({
      method: "GET",
      path: "/v1/plans/:id",
      tag: TAG,
      summary: "Read a plan",
      description: "For callers who may see every action of the plan.",
      scope: ["actions:read", "actions:read_own"],
      params: schema.PlanParams,
      responses: { 200: PLAN_RESPONSE },
      errors: [ERRORS.notFound, "RECORD_ALTERED"],
      handle: ({ credential, params }) => readPlanReply(host, params.id, credential),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/plans/:id/approval",
      tag: TAG,
      summary: "Approve or reject a plan",
      description:
        "Requires the `approval_token` from the plan's record for this key. Rejects the actions in `strikes`, and approves the other pending ones in one transaction. Actions on which another person must vote stay pending. The votes name the digest of the actions that remain, and are void once these actions change.",
      scope: "approvals:decide",
      params: schema.PlanParams,
      body: schema.PlanApprovalBody,
      bodyLimit: 262_144,
      responses: { 200: PLAN_RESPONSE },
      errors: [
        ...VOTE_ERRORS,
        ...host.barErrors,
        "TOKEN_MALFORMED",
        "TOKEN_INVALID",
        "TOKEN_OTHER_ACTION",
        "TOKEN_OTHER_APPROVER",
      ],
      async handle({ credential, params, body: { token, ...answer } }) {
        await voteOnPlan(createFactReadingHost(host, null), credential, params.id, answer, { token });
        return readPlanReply(host, params.id, credential);
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/plans/:id/cancel",
      tag: TAG,
      summary: "Cancel a plan",
      description:
        "Cancels the pending actions of the plan in one transaction, and voids the votes on the others. An admin key also cancels actions that may start and have not started.",
      scope: ["actions:submit", "actions:execute"],
      params: schema.PlanParams,
      body: CancelBody,
      bodyLimit: 32_768,
      responses: { 200: PLAN_RESPONSE },
      errors: [ERRORS.notFound, "NOT_THE_SUBMITTER", "ACTION_NOT_PENDING", "RECORD_ALTERED"],
      handle: async ({ credential, params, body }) =>
        buildPlanReply(host, await cancelPlan(host, credential, params.id, body.reason ?? null), credential),
    }),
    ...signedPlanRoutes(host),
  ];
}

function listRoute(host: CoreHost) {
  return defineRoute({
    method: "GET",
    path: "/v1/plans",
    tag: TAG,
    summary: "List plans, newest first",
    description: "Plans whose actions this key may all see. A page can have fewer plans than `limit`.",
    scope: ["actions:read", "actions:read_own"],
    query: schema.PlanQuery,
    responses: { 200: { description: "A page.", schema: schema.PlanList } },
    errors: ["INVALID_CURSOR", "RECORD_ALTERED"],
    async handle({ query, credential }) {
      const { agent_id, cursor, limit = schema.MAX_LISTED_PLANS } = query;
      const firsts = await host.storage.actions({
        visibility: credential.visibility,
        first_of_plan: true,
        ...(agent_id === undefined ? {} : { agent_id }),
        ...(cursor === undefined ? {} : { before_seq: decodeSeqCursor(LIST_NAME, cursor) }),
        limit: limit + 1,
      });
      const page = cutPage(LIST_NAME, firsts, limit, ({ decision_seq }) => decision_seq);
      const plans: schema.PlanSummary[] = [];
      for (const { plan_id } of page.rows) {
        await host.waitForReadSlot(credential.key.id);
        const rows = await readRowsOfVisiblePlan(host.storage, plan_id ?? "", credential).catch(nullIfInvisible);
        if (rows !== null) plans.push(await summarizePlan(host, rows));
      }
      return {
        status: 200,
        json: { plans, next_cursor: page.next_cursor },
        headers: nextLink("/v1/plans", query, page.next_cursor),
      };
    },
  });
}

/** Returns null for PLAN_NOT_FOUND: a reader who sees the first action of a plan might not see all others. */
function nullIfInvisible(error: unknown): null {
  if (error instanceof Refusal && error.code === ERRORS.notFound.code) return null;
  throw error;
}

function signedPlanRoutes(host: CoreHost) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/plans/:id/challenge",
      tag: TAG,
      summary: "Start to sign a vote on a plan",
      description:
        "For a signed-in user. Returns what the passkey signs: one statement for each pending action, strikes first (docs/record.md). Records nothing.",
      scope: "approvals:decide",
      params: schema.PlanParams,
      body: schema.PlanChallengeBody,
      bodyLimit: 262_144,
      responses: { 200: { description: "The statements, and the options for the browser.", schema: VoteChallenge } },
      errors: [...VOTE_ERRORS, ...host.barErrors, "VOTE_SIGNATURE_INVALID"],
      async handle({ credential, params, body }) {
        const { passkeys, user } = requireVoteSigner(host, credential);
        const { nonce, expires_at } = passkeys.createNonce();
        const statements = await readPlanStatements(host, credential, params.id, body, nonce);
        const options = passkeys.options(user, createVotesChallenge(statements.map(voteDigest)));
        return { status: 200, json: { nonce, expires_at: toRfc3339(expires_at), statements, options } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/plans/:id/signed-approval",
      tag: TAG,
      summary: "Vote on a plan with a passkey",
      description: "Like POST /v1/plans/{id}/approval, but with a signature instead of the token.",
      scope: "approvals:decide",
      params: schema.PlanParams,
      body: schema.SignedPlanBody,
      bodyLimit: 262_144,
      responses: { 200: PLAN_RESPONSE },
      errors: [...VOTE_ERRORS, ...host.barErrors, "VOTE_SIGNATURE_INVALID"],
      async handle({ credential, params, body: { nonce, response, ...answer } }) {
        const { passkeys } = requireVoteSigner(host, credential);
        const statements = await readPlanStatements(host, credential, params.id, answer, nonce);
        const digests = statements.map(voteDigest);
        const assertion = await passkeys.claim(nonce, createVotesChallenge(digests), response);
        const gestures = new Map(
          statements.map(({ action_id, decision, preview }): [string, VoteSignature] => [
            action_id,
            { kind: "passkey", decision, nonce, preview, votes: digests, ...assertion },
          ]),
        );
        const gestureFor = (id: string): VoteSignature => {
          const gesture = gestures.get(id);
          if (gesture !== undefined) return gesture;
          throw new Refusal("VOTE_SIGNATURE_INVALID", "the plan has changed since you signed; read it and sign again");
        };
        await voteOnPlan(createFactReadingHost(host, null), credential, params.id, answer, { gestureFor });
        return readPlanReply(host, params.id, credential);
      },
    }),
  ];
}

/**
 * Returns the statements that the credential signs for this vote on the plan, in the order in which the votes are cast.
 */
async function readPlanStatements(
  host: CoreHost,
  credential: Credential,
  id: string,
  answer: PlanVote,
  nonce: string,
): Promise<VoteStatement[]> {
  const rows = await readRowsOfVisiblePlan(host.storage, id, credential);
  const plan = await verifyPlan(host, host.storage, rows, host.clock());
  const statements: VoteStatement[] = [];
  for (const { row, vote } of listPlannedVotes(plan, answer))
    statements.push(await readVoteStatement(host, row, credential, vote, nonce));
  return statements;
}
