/** Edits: an approver changes parameters of a pending action, where its rules allow it (`approval.editable`). */
import { type CoreHost, defineCorePlugin } from "../../src/core.ts";
import { defineRoute, Type } from "../../src/plugin.ts";
import { ACTION_RESPONSE, ApprovalBody, buildActionReply, createFactReadingHost, IdParams } from "../actions/api.ts";
import { editAction } from "./edit.ts";
import { ERRORS } from "./errors.ts";

/** The documentation of the API lists the route with those of actions. */
const TAG = "actions";

const EditBody = Type.Object(
  {
    token: ApprovalBody.properties.token,
    changes: Type.Record(
      Type.String({ maxLength: 200, description: "Path, such as `params.amount`." }),
      Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
      { minProperties: 1, maxProperties: 16, description: "New values, of the same types as before." },
    ),
    reason: Type.Optional(Type.String({ maxLength: 2000, description: "Recorded in the ledger." })),
  },
  {
    additionalProperties: false,
    examples: [{ token: "apt1_example", changes: { "params.amount": 90 }, reason: "the rest was paid already" }],
  },
);

export default defineCorePlugin({
  name: "edits",
  needs: ["actions"],
  errors: ERRORS,
  setup: (host) => ({ routes: [editRoute(host)] }),
});

function editRoute(host: CoreHost) {
  return defineRoute({
    method: "POST",
    path: "/v1/actions/:id/edit",
    tag: TAG,
    summary: "Change parameters of a pending action",
    description:
      "For an approver, where the rules allow it (`approval.editable`). Requires the `approval_token` from the action's record. The changed request is evaluated again, including limits. It stays pending, earlier votes and tokens are void, and someone other than the caller must approve it. A request can be changed once.",
    scope: "approvals:decide",
    params: IdParams,
    body: EditBody,
    bodyLimit: 32_768,
    responses: { 200: ACTION_RESPONSE },
    errors: [
      "ACTION_NOT_FOUND",
      "SELF_APPROVAL",
      "APPROVER_NOT_ELIGIBLE",
      "TOKEN_MALFORMED",
      "TOKEN_INVALID",
      "TOKEN_OTHER_ACTION",
      "TOKEN_OTHER_APPROVER",
      "ACTION_NOT_PENDING",
      "APPROVAL_EXPIRED",
      ERRORS.notAllowed,
      "NO_LONGER_ALLOWED",
      ...host.barErrors,
      "FACTS_UNAVAILABLE",
      "FACTS_CHANGED",
      "ACTION_ERASED",
      "RECORD_ALTERED",
    ],
    handle: async ({ credential, params, body: { token, changes, reason } }) =>
      buildActionReply(
        host,
        await editAction(createFactReadingHost(host, null), credential, params.id, {
          token,
          changes,
          reason: reason ?? null,
        }),
        credential,
      ),
  });
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    edits: typeof editRoute;
  }
}
