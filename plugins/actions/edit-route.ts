/** The route with which an approver changes parameters of a pending action. */
import type { CoreHost } from "../../src/core.ts";
import { defineRoute } from "../../src/plugin.ts";
import { buildActionReply, ACTION_RESPONSE } from "./action-record.ts";
import { editAction } from "./edit-action.ts";
import { createFactReadingHost } from "./read-inputs.ts";
import * as schema from "./schemas.ts";

export function editRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/actions/:id/edit",
    tag,
    summary: "Change parameters of a pending action",
    description:
      "For an approver, where the rules allow it (`approval.editable`). Requires the `approval_token` from the action's record. The changed request is evaluated again, including limits. It stays pending, earlier votes and tokens are void, and someone other than the caller must approve it. A request can be changed once.",
    scope: "approvals:decide",
    params: schema.IdParams,
    body: schema.EditBody,
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
      "EDIT_NOT_ALLOWED",
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
