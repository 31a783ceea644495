/** Routes that activate and deactivate policies. */
import type { CoreHost } from "../../src/core.ts";
import { defineRoute, IF_MATCH } from "../../src/plugin.ts";
import { activationErrors, activatePolicy, CHANGE_ERRORS, deactivatePolicy } from "./policy-changes.ts";
import { policyReply, POLICY_RESPONSE } from "./policy-record.ts";
import * as schema from "./schemas.ts";

export function activateRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/policies/:id/activate",
    tag,
    summary: "Activate a version",
    scope: "policies:activate",
    params: schema.PolicyParams,
    headers: IF_MATCH,
    body: schema.ActivateBody,
    description:
      "Default: the latest version. Activating an older one is a rollback. Each request is evaluated by either the old or the new set.",
    responses: { 200: POLICY_RESPONSE },
    errors: [...CHANGE_ERRORS, "POLICY_VERSION_NOT_FOUND", "POLICY_INVALID", ...activationErrors(host)],
    handle: async ({ params, body, headers, credential }) =>
      policyReply(host, await activatePolicy(host, params.id, body.version ?? null, headers, credential)),
  });
}

export function deactivateRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/policies/:id/deactivate",
    tag,
    summary: "Remove a policy from the active set",
    scope: "policies:activate",
    params: schema.PolicyParams,
    headers: IF_MATCH,
    responses: { 200: POLICY_RESPONSE },
    errors: [...CHANGE_ERRORS, "POLICY_INVALID"],
    handle: async ({ params, headers, credential }) =>
      policyReply(host, await deactivatePolicy(host, params.id, headers, credential)),
  });
}
