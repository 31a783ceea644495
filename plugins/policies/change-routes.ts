/** Routes that store and delete policies. */
import { type CoreHost, readIdempotentCall, REPLAYED_HEADERS } from "../../src/core.ts";
import { defineRoute, IF_MATCH } from "../../src/plugin.ts";
import { FILE_TYPES, parsePolicyBody, YAML_TYPES } from "./parse-body.ts";
import {
  activationErrors,
  CHANGE_ERRORS,
  createPolicy,
  deletePolicy,
  importPolicies,
  updatePolicy,
} from "./policy-changes.ts";
import { policyReply, POLICY_RESPONSE, renderPolicy, listWarnings } from "./policy-record.ts";
import * as schema from "./schemas.ts";
import { findVersion } from "./stored-policies.ts";

/** Errors of parsing, compiling and testing a policy. */
const PARSE_ERRORS = ["POLICY_INVALID", "TOO_MANY_TRIALS", "TRIAL_TOO_LONG", "TRIAL_LOST"] as const;

export function createRoute(host: CoreHost, tag: string, bodyLimit: number) {
  return defineRoute({
    method: "POST",
    path: "/v1/policies",
    tag,
    summary: "Store a policy",
    scope: "policies:write",
    query: schema.ActivateQuery,
    body: schema.PolicyBody,
    textBodies: YAML_TYPES,
    bodyLimit,
    idempotent: true,
    description:
      "The policy, as JSON or as YAML. It has no effect until it is active: send `?activate=true`, or POST …/activate.",
    responses: {
      200: { ...POLICY_RESPONSE, description: "It was stored by an earlier request with this Idempotency-Key." },
      201: { ...POLICY_RESPONSE, description: "Stored." },
    },
    errors: [
      ...PARSE_ERRORS,
      ...activationErrors(host),
      "POLICY_NAME_TAKEN",
      "POLICY_MANAGED",
      "POLICY_NOT_FOUND",
      "IDEMPOTENCY_CONFLICT",
    ],
    async handle({ query, body, headers, credential, signal }) {
      const read = await parsePolicyBody(host, body, signal);
      const activate = query.activate === true;
      const call = readIdempotentCall(headers, "POST /v1/policies", { definition: read.text, activate });
      const { row, replayed } = await createPolicy(host, read, { credential, activate }, call);
      const reply = await policyReply(host, row, { status: replayed ? 200 : 201 });
      return {
        ...reply,
        headers: { ...reply.headers, Location: `/v1/policies/${row.id}`, ...(replayed ? REPLAYED_HEADERS : {}) },
      };
    },
  });
}

export function importRoute(host: CoreHost, tag: string, bodyLimit: number) {
  return defineRoute({
    method: "POST",
    path: "/v1/policies/import-yaml",
    tag,
    summary: "Store several policies at once",
    scope: "policies:write",
    query: schema.ActivateQuery,
    body: schema.ImportBody,
    textBodies: FILE_TYPES,
    bodyLimit,
    description:
      "Stores all policies or none. An existing name gets a new version, unless it is unchanged. Errors have a line and column.",
    responses: { 200: { description: "The outcome for each policy.", schema: schema.ImportResult } },
    errors: [...PARSE_ERRORS, ...activationErrors(host), "POLICY_MANAGED"],
    async handle({ query, body, credential, signal }) {
      const activate = query.activate === true;
      const read = await host.policies.trials.read({ yaml: typeof body === "string" ? body : body.yaml }, signal);
      const { plans, policySet } = await importPolicies(host, read, { credential, activate });
      const policies = plans.map(({ id, name, version, outcome, row }) => ({
        id,
        name,
        version,
        outcome,
        active: activate || row?.active_version === version,
      }));
      return {
        status: 200,
        json: {
          policies,
          policy_set: policySet,
          warnings: listWarnings(
            host,
            read.map(({ document }) => document),
          ),
        },
      };
    },
  });
}

export function updateRoute(host: CoreHost, tag: string, bodyLimit: number) {
  return defineRoute({
    method: "PUT",
    path: "/v1/policies/:id",
    tag,
    summary: "Create a new version",
    scope: "policies:write",
    params: schema.PolicyParams,
    headers: IF_MATCH,
    query: schema.ActivateQuery,
    body: schema.PolicyBody,
    textBodies: YAML_TYPES,
    bodyLimit,
    description:
      "Versions are immutable. An unchanged policy creates no version; in YAML, a changed comment counts as a change. Send the `ETag` that you read as `If-Match` to reject the change if the policy has changed since.",
    responses: { 200: POLICY_RESPONSE },
    errors: [...CHANGE_ERRORS, ...PARSE_ERRORS, ...activationErrors(host)],
    handle: async ({ params, query, body, headers, credential, signal }) =>
      policyReply(
        host,
        await updatePolicy(host, params.id, await parsePolicyBody(host, body, signal), headers, {
          credential,
          activate: query.activate === true,
        }),
      ),
  });
}

export function deleteRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "DELETE",
    path: "/v1/policies/:id",
    tag,
    summary: "Delete a policy",
    scope: "policies:write",
    params: schema.PolicyParams,
    headers: IF_MATCH,
    description:
      "An active policy is deactivated first, which also needs policies:activate. Its versions are retained for replay; a new policy with the same name continues their numbers.",
    responses: { 200: { ...POLICY_RESPONSE, description: "The policy after the deletion." } },
    errors: [...CHANGE_ERRORS, "POLICY_INVALID"],
    async handle({ params, headers, credential }) {
      const row = await deletePolicy(host, params.id, headers, credential);
      return {
        status: 200,
        json: await renderPolicy(host, row, await findVersion(host.storage, row, row.latest_version)),
      };
    },
  });
}
