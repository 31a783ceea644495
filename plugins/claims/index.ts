/** Claims: an approver declares that they are reviewing a pending request, and can hand it to another approver. */
import { canSee, type CoreHost, slicePageBySeq, defineCorePlugin } from "../../src/core.ts";
import { defineRoute, nextLink, toRfc3339 } from "../../src/plugin.ts";
import { IdParams, visibleAction } from "../actions/api.ts";
import { claimAction, findApprovers, releaseClaim } from "./changes.ts";
import { claimNotice } from "./notice.ts";
import * as schema from "./schemas.ts";
import { type Claim, claimState, findClaim } from "./state.ts";

const TAG = "claims";
const LIST_NAME = "claims";
const BODY_BYTES = 4096;
const { ERRORS } = schema;
const ACTION_ERRORS = [
  "ACTION_NOT_FOUND",
  "ACTION_NOT_PENDING",
  "APPROVAL_EXPIRED",
  "ACTION_ERASED",
  "RECORD_ALTERED",
] as const;

export default defineCorePlugin({
  name: "claims",
  needs: ["actions"],
  errors: ERRORS,
  options: schema.ClaimOptions,
  entries: { [schema.CLAIM_ENTRY]: schema.ClaimChange },
  folds: [claimState],
  notices: [claimNotice],
  setup: (host, options) => ({ routes: claimRoutes(host, options) }),
});

function claimRoutes(host: CoreHost, options: schema.ClaimOptions) {
  const response = { description: "The claim.", schema: schema.ClaimRecord };
  return [
    defineRoute({
      method: "GET",
      path: "/v1/claims",
      tag: TAG,
      summary: "List claims, newest first",
      description: "Claims of pending actions that this key may see.",
      scope: ["approvals:decide", "actions:read"],
      query: schema.ClaimQuery,
      responses: { 200: { description: "A page.", schema: schema.ClaimList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query, credential }) {
        const snapshot = await host.snapshot();
        const ids = [...snapshot.state(claimState).keys()];
        const votes = ids.length === 0 ? [] : await host.storage.approvalsOfActions(ids);
        const rows = ids.length === 0 ? [] : await host.storage.actionsById(ids);
        const claims = rows
          .filter((row) => canSee(credential.visibility, row))
          .map((row) => findClaim(snapshot, row, votes))
          .filter((claim) => claim !== null);
        const page = slicePageBySeq(LIST_NAME, claims, query);
        return {
          status: 200,
          json: { claims: page.rows.map(renderClaim), next_cursor: page.next_cursor },
          headers: nextLink("/v1/claims", query, page.next_cursor),
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/claim",
      tag: TAG,
      summary: "Claim a pending action, or hand it over",
      description:
        "Says that an approver is looking at the request. It decides nothing, and everyone can still vote. The caller and the user who gets the claim must be able to approve the action. The claim ends when the action settles, when its holder votes, when it is released, and after `claims.minutes`.",
      scope: "approvals:decide",
      params: IdParams,
      body: schema.ClaimBody,
      bodyLimit: BODY_BYTES,
      responses: { 200: response },
      errors: [...ACTION_ERRORS, "APPROVER_NOT_ELIGIBLE", ERRORS.held, ERRORS.tooMany],
      async handle({ params, body, credential }) {
        return { status: 200, json: renderClaim(await claimAction(host, options, credential, params.id, body)) };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/release-claim",
      tag: TAG,
      summary: "Release your claim of an action",
      scope: "approvals:decide",
      params: IdParams,
      body: schema.ReleaseBody,
      bodyLimit: BODY_BYTES,
      responses: { 204: { description: "The claim has ended." } },
      errors: [...ACTION_ERRORS, ERRORS.notFound],
      async handle({ params, credential }) {
        await releaseClaim(host, credential, params.id);
        return { status: 204 };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/actions/:id/approvers",
      tag: TAG,
      summary: "List users to whom an action can be handed",
      description:
        "Other users who can approve the action now; no one if it is not pending or the caller cannot approve it. One request evaluates the rights of 500 users.",
      scope: "approvals:decide",
      params: IdParams,
      query: schema.ApproverQuery,
      responses: { 200: { description: "The users.", schema: schema.ApproverList } },
      errors: ["ACTION_NOT_FOUND"],
      async handle({ params, query, credential }) {
        const row = await visibleAction(host.storage, params.id, credential);
        return { status: 200, json: { users: await findApprovers(host, credential, row, query.name ?? "") } };
      },
    }),
  ];
}

function renderClaim({ action_id, holder, at, until, by }: Claim): schema.ClaimRecord {
  return { action_id, holder, claimed_at: toRfc3339(at), until: toRfc3339(until), claimed_by: by };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    claims: typeof claimRoutes;
  }
}
