/** Routes that vote on, cancel and list pending actions. */
import type { CoreHost } from "../../src/core.ts";
import { defineRoute } from "../../src/plugin.ts";
import { cancelAction, castVoteOnAction, withdrawApproval } from "./cast-vote.ts";
import { linkRoutes } from "./link-routes.ts";
import { signedVoteRoutes } from "./signed-vote-routes.ts";
import { pendingGroupsRoute, pendingRoute } from "./pending-route.ts";
import { createPendingIndex } from "./pending-index.ts";
import { buildActionReply, ACTION_RESPONSE } from "./action-record.ts";
import { createFactReadingHost } from "./read-inputs.ts";
import { liftRejection } from "./lift-rejection.ts";
import { LiftRejectionBody } from "./rejection-schemas.ts";
import * as schema from "./schemas.ts";

export function voteRoutes(host: CoreHost, tag: string) {
  const readPending = createPendingIndex(host);
  return [
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/approval",
      tag,
      summary: "Approve or deny",
      scope: "approvals:decide",
      params: schema.IdParams,
      body: schema.approvalBody(host),
      bodyLimit: 32_768,
      description:
        "Requires the `approval_token` from the action's record for this key. POST /v1/approval-link/verdict accepts a link token instead, without a key.",
      responses: { 200: ACTION_RESPONSE },
      errors: [
        "ACTION_NOT_FOUND",
        "SELF_APPROVAL",
        "VOTE_SIGNATURE_REQUIRED",
        "APPROVER_NOT_ELIGIBLE",
        "TOKEN_MALFORMED",
        "TOKEN_INVALID",
        "TOKEN_OTHER_ACTION",
        "TOKEN_OTHER_APPROVER",
        "ALREADY_VOTED",
        "ACTION_NOT_PENDING",
        ...host.guard.approvalErrors,
        "APPROVAL_EXPIRED",
        "NO_LONGER_ALLOWED",
        ...host.barErrors,
        "FACTS_UNAVAILABLE",
        "FACTS_CHANGED",
        "ACTION_ERASED",
        "RECORD_ALTERED",
        "AGENT_MISMATCH",
        ...(host.soleApproval?.errors ?? []),
        ...(host.voteAddition?.errors ?? []),
      ],
      async handle({ credential, params, body }) {
        const { row, votes, grantId } = await castVoteOnAction(
          createFactReadingHost(host, null),
          { credential, id: params.id, proof: body },
          body,
        );
        const grant = grantId === null ? undefined : await host.voteAddition?.render(host, grantId);
        const newGrant = grant === undefined ? {} : { newGrant: grant };
        return buildActionReply(host, row, credential, { votes, ...newGrant });
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/lift-rejection",
      tag,
      summary: "Lift a rejection",
      description:
        "Ends the period in which the rejection of this action denies the same request. The action stays denied. Available to anyone who may vote on the action, other than as a delegate.",
      scope: "approvals:decide",
      params: schema.IdParams,
      body: LiftRejectionBody,
      bodyLimit: 32_768,
      responses: { 200: ACTION_RESPONSE },
      errors: ["ACTION_NOT_FOUND", "SELF_APPROVAL", "REJECTION_NOT_HELD", "RECORD_ALTERED"],
      handle: async ({ credential, params, body }) =>
        buildActionReply(host, await liftRejection(host, credential, params.id, body.reason ?? null), credential),
    }),
    ...signedVoteRoutes(host, tag),
    pendingRoute(host, readPending, tag),
    pendingGroupsRoute(host, readPending, tag),
    ...linkRoutes(host, tag),
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/cancel",
      tag,
      summary: "Cancel an action",
      description:
        "Cancels a pending action. An admin key can also cancel an action that may start and has not started.",
      scope: ["actions:submit", "actions:execute"],
      params: schema.IdParams,
      body: schema.CancelBody,
      bodyLimit: 32_768,
      responses: { 200: ACTION_RESPONSE },
      errors: ["NOT_THE_SUBMITTER", "ACTION_NOT_FOUND", "ACTION_NOT_PENDING", "APPROVAL_EXPIRED"],
      handle: async ({ credential, params, body }) =>
        buildActionReply(host, await cancelAction(host, credential, params.id, body.reason ?? null), credential),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/withdraw",
      tag,
      summary: "Withdraw an approval",
      description:
        "Withdraws the caller's own approval of an action that has not started, and so cancels the action. Not possible once a permit was or may have been issued.",
      scope: "approvals:decide",
      params: schema.IdParams,
      body: schema.CancelBody,
      bodyLimit: 32_768,
      responses: { 200: ACTION_RESPONSE },
      errors: ["ACTION_NOT_FOUND", "APPROVAL_NOT_WITHDRAWN", "APPROVAL_EXPIRED", "ACTION_ERASED", "RECORD_ALTERED"],
      handle: async ({ credential, params, body }) =>
        buildActionReply(host, await withdrawApproval(host, credential, params.id, body.reason ?? null), credential),
    }),
  ];
}
