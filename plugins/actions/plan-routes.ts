/** Routes of plans: submit, list, read, cancel, and vote on the list of their actions. */
import { Type } from "@sinclair/typebox";
import {
  type CoreHost,
  createVotesChallenge,
  type VoteSignature,
  readIdempotencyKey,
  REPLAYED_HEADERS,
  voteDigest,
  type VoteStatement,
} from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ExpiryTask } from "./expiry.ts";
import { cancelPlan } from "./plan-cancel.ts";
import { planListRoute } from "./plan-list-route.ts";
import { PLAN_RESPONSE, buildPlanReply } from "./plan-record.ts";
import * as schema from "./plan-schemas.ts";
import { readRowsOfVisiblePlan, verifyPlan } from "./plan-state.ts";
import { type PlanVote, listPlannedVotes, voteOnPlan } from "./plan-vote.ts";
import { createFactReadingHost } from "./read-inputs.ts";
import { CancelBody, SESSION_HEADER } from "./schemas.ts";
import { readVoteStatement, requireVoteSigner } from "./signed-vote-routes.ts";
import { VoteChallenge } from "./signed-vote-schemas.ts";
import { submitPlan } from "./submit-plan.ts";

const PLAN_HEADERS = Type.Object({
  [SESSION_HEADER]: Type.Optional(
    Type.String({ description: "Token of the agent's session, from `POST /v1/agent-sessions`." }),
  ),
});

const VOTE_ERRORS = [
  "PLAN_NOT_FOUND",
  "PLAN_STOPPED",
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

export function planRoutes(host: CoreHost, tag: string, expiry: ExpiryTask) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/plans",
      tag,
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
        "PLAN_NOT_FOUND",
        "RECORD_ALTERED",
        "TOO_MANY_PENDING",
        "INVALID_SESSION_TOKEN",
        ...host.stepErrors,
      ],
      async handle(context) {
        const { body, credential, headers } = context;
        const call = { headers, idempotencyKey: readIdempotencyKey(headers) };
        const { rows, origin } = await submitPlan(createFactReadingHost(host, context), credential, body, call);
        for (const { status, expires_at } of rows)
          if (status === "pending_approval" && expires_at !== null) expiry.plan(expires_at);
        const reply = await buildPlanReply(host, rows, credential, origin === "replayed" ? REPLAYED_HEADERS : {});
        return { ...reply, headers: { ...reply.headers, Location: `/v1/plans/${rows[0]?.plan_id ?? ""}` } };
      },
    }),
    planListRoute(host, tag),
    defineRoute({
      method: "GET",
      path: "/v1/plans/:id",
      tag,
      summary: "Read a plan",
      description: "For callers who may see every action of the plan.",
      scope: ["actions:read", "actions:read_own"],
      params: schema.PlanParams,
      responses: { 200: PLAN_RESPONSE },
      errors: ["PLAN_NOT_FOUND", "RECORD_ALTERED"],
      handle: async ({ credential, params }) =>
        buildPlanReply(host, await readRowsOfVisiblePlan(host.storage, params.id, credential), credential),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/plans/:id/approval",
      tag,
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
        return buildPlanReply(host, await readRowsOfVisiblePlan(host.storage, params.id, credential), credential);
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/plans/:id/cancel",
      tag,
      summary: "Cancel a plan",
      description:
        "Cancels the pending actions of the plan in one transaction, and voids the votes on the others. An admin key also cancels actions that may start and have not started.",
      scope: ["actions:submit", "actions:execute"],
      params: schema.PlanParams,
      body: CancelBody,
      bodyLimit: 32_768,
      responses: { 200: PLAN_RESPONSE },
      errors: ["PLAN_NOT_FOUND", "NOT_THE_SUBMITTER", "ACTION_NOT_PENDING", "RECORD_ALTERED"],
      handle: async ({ credential, params, body }) =>
        buildPlanReply(host, await cancelPlan(host, credential, params.id, body.reason ?? null), credential),
    }),
    ...signedPlanRoutes(host, tag),
  ];
}

function signedPlanRoutes(host: CoreHost, tag: string) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/plans/:id/challenge",
      tag,
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
      tag,
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
        return buildPlanReply(host, await readRowsOfVisiblePlan(host.storage, params.id, credential), credential);
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
