/** Policies over the API: immutable versions, activation, rollback, diffs and dry runs. */
import { type CoreHost, defineCorePlugin, readIdempotentCall, REPLAYED_HEADERS } from "../../src/core.ts";
import { defineRoute, IF_MATCH, nextLink, type Route, slicePage } from "../../src/plugin.ts";
import {
  activatePolicy,
  createPolicy,
  deactivatePolicy,
  deletePolicy,
  importPolicies,
  updatePolicy,
} from "./policy-changes.ts";
import { editorRoutes } from "./check.ts";
import { dryRunRoute } from "./dry-run.ts";
import { findPolicy, findVersion } from "./stored-policies.ts";
import { FILE_TYPES, parsePolicyBody, YAML_TYPES } from "./parse-body.ts";
import * as schema from "./schemas.ts";
import { shadowRoute } from "./shadow.ts";
import { suggestRoute } from "./suggest.ts";
import { policyReply, renderPolicy, renderSummary, listWarnings } from "./policy-record.ts";
import { versionRoutes } from "./versions.ts";

/** Parsing YAML takes seconds per megabyte and delays other requests with policies. */
const MAX_BODY = 512 * 1024;
const TAG = "policies";

export default defineCorePlugin({ name: "policies", setup: (host) => ({ routes: routes(host) }) });

function routes(host: CoreHost): Route[] {
  const policyResponse = { description: "The policy.", schema: schema.PolicyRecord };
  const changed = ["POLICY_NOT_FOUND", "POLICY_MANAGED", "PRECONDITION_FAILED"] as const;
  const reads = ["POLICY_INVALID", "TOO_MANY_TRIALS", "TRIAL_TOO_LONG", "TRIAL_LOST"] as const;
  const id = schema.PolicyParams;
  return [
    defineRoute({
      method: "GET",
      path: "/v1/policies",
      tag: TAG,
      summary: "List policies, newest first",
      scope: "policies:read",
      query: schema.ListQuery,
      responses: { 200: { description: "A page.", schema: schema.PolicyList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query }) {
        const matching = (await host.storage.policies()).filter(
          (row) =>
            row.deleted_at === null &&
            (query.name === undefined || row.name === query.name) &&
            (query.status === undefined || (query.status === "active") === (row.active_version !== null)),
        );
        const { rows, next_cursor } = slicePage("policies", matching, query);
        const policies = await Promise.all(
          rows.map(async (row) => renderSummary(host, row, await findVersion(host.storage, row, row.latest_version))),
        );
        return { status: 200, json: { policies, next_cursor }, headers: nextLink("/v1/policies", query, next_cursor) };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/policies",
      tag: TAG,
      summary: "Store a policy",
      scope: "policies:write",
      query: schema.ActivateQuery,
      body: schema.PolicyBody,
      textBodies: YAML_TYPES,
      bodyLimit: MAX_BODY,
      idempotent: true,
      description:
        "As JSON or as YAML. It has no effect until it is active: send `?activate=true`, or POST …/activate.",
      responses: {
        200: { ...policyResponse, description: "It was stored by an earlier request with this Idempotency-Key." },
        201: { ...policyResponse, description: "Stored." },
      },
      errors: [
        ...reads,
        "SUGGESTED_RULE_UNTRIED",
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
    }),
    defineRoute({
      method: "POST",
      path: "/v1/policies/import-yaml",
      tag: TAG,
      summary: "Store several policies at once",
      scope: "policies:write",
      query: schema.ActivateQuery,
      body: schema.ImportBody,
      textBodies: FILE_TYPES,
      bodyLimit: MAX_BODY,
      description:
        "Stores all policies or none. An existing name gets a new version, unless it is unchanged. Errors have a line and column.",
      responses: { 200: { description: "The outcome for each policy.", schema: schema.Imported } },
      errors: [...reads, "SUGGESTED_RULE_UNTRIED", "POLICY_MANAGED"],
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
    }),
    dryRunRoute(host, TAG, MAX_BODY),
    ...editorRoutes(host, TAG, MAX_BODY),
    defineRoute({
      method: "GET",
      path: "/v1/policies/:id",
      tag: TAG,
      summary: "Read a policy",
      scope: "policies:read",
      params: id,
      query: schema.VersionQuery,
      responses: { 200: policyResponse },
      errors: ["POLICY_NOT_FOUND", "POLICY_VERSION_NOT_FOUND"],
      handle: async ({ params, query }) =>
        policyReply(host, await findPolicy(host.storage, params.id), { version: query.version }),
    }),
    defineRoute({
      method: "PUT",
      path: "/v1/policies/:id",
      tag: TAG,
      summary: "Create a new version",
      scope: "policies:write",
      params: id,
      headers: IF_MATCH,
      query: schema.ActivateQuery,
      body: schema.PolicyBody,
      textBodies: YAML_TYPES,
      bodyLimit: MAX_BODY,
      description:
        "Versions are immutable. An unchanged policy creates none; as YAML, a changed comment is a change. Send the `ETag` that you read as `If-Match` to reject the change if the policy has changed since.",
      responses: { 200: policyResponse },
      errors: [...changed, ...reads, "SUGGESTED_RULE_UNTRIED"],
      handle: async ({ params, query, body, headers, credential, signal }) =>
        policyReply(
          host,
          await updatePolicy(host, params.id, await parsePolicyBody(host, body, signal), headers, {
            credential,
            activate: query.activate === true,
          }),
        ),
    }),
    defineRoute({
      method: "DELETE",
      path: "/v1/policies/:id",
      tag: TAG,
      summary: "Delete a policy",
      scope: "policies:write",
      params: id,
      headers: IF_MATCH,
      description:
        "An active policy is deactivated first, which also needs policies:activate. Its versions are retained for replay; a new policy with the name continues their numbers.",
      responses: { 200: { ...policyResponse, description: "The policy after the deletion." } },
      errors: [...changed, "POLICY_INVALID"],
      async handle({ params, headers, credential }) {
        const row = await deletePolicy(host, params.id, headers, credential);
        return {
          status: 200,
          json: await renderPolicy(host, row, await findVersion(host.storage, row, row.latest_version)),
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/policies/:id/activate",
      tag: TAG,
      summary: "Activate a version",
      scope: "policies:activate",
      params: id,
      headers: IF_MATCH,
      body: schema.ActivateBody,
      description:
        "Default: the latest version. Activating an older one is a rollback. Each request is decided by either the old or the new set.",
      responses: { 200: policyResponse },
      errors: [...changed, "POLICY_VERSION_NOT_FOUND", "POLICY_INVALID", "SUGGESTED_RULE_UNTRIED"],
      handle: async ({ params, body, headers, credential }) =>
        policyReply(host, await activatePolicy(host, params.id, body.version ?? null, headers, credential)),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/policies/:id/deactivate",
      tag: TAG,
      summary: "Remove a policy from the active set",
      scope: "policies:activate",
      params: id,
      headers: IF_MATCH,
      responses: { 200: policyResponse },
      errors: [...changed, "POLICY_INVALID"],
      handle: async ({ params, headers, credential }) =>
        policyReply(host, await deactivatePolicy(host, params.id, headers, credential)),
    }),
    shadowRoute(host, TAG),
    suggestRoute(host, TAG),
    ...versionRoutes(host, TAG),
  ];
}
