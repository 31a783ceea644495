/** Policies over the API: versions that never change, activation, rollback, differences, dry runs. */
import {
  definePlugin,
  defineRoute,
  type Host,
  readIdempotentCall,
  IF_MATCH,
  nextLink,
  slicePage,
  REPLAYED_HEADERS,
  type Route,
} from "../../src/plugin.ts";
import {
  activatePolicy,
  createPolicy,
  deactivatePolicy,
  deletePolicy,
  importPolicies,
  updatePolicy,
} from "./changes.ts";
import { dryRunRoute } from "./dry-run.ts";
import { findPolicy, findVersion } from "./library.ts";
import { FILE_TYPES, parsePolicyBody, YAML_TYPES } from "./parse-body.ts";
import * as schema from "./schemas.ts";
import { shadowRoute } from "./shadow.ts";
import { policyReply, renderPolicy, renderSummary, listWarnings } from "./policy-record.ts";
import { versionRoutes } from "./versions.ts";

/** YAML takes seconds a megabyte to parse, which others who send policies wait for. */
const MAX_BODY = 512 * 1024;
const TAG = "policies";

export default definePlugin({ name: "policies", setup: (host) => ({ routes: routes(host) }) });

function routes(host: Host): Route[] {
  const one = { description: "The policy.", schema: schema.PolicyRecord };
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
        const all = (await host.storage.policies()).filter(
          (row) =>
            row.deleted_at === null &&
            (query.name === undefined || row.name === query.name) &&
            (query.status === undefined || (query.status === "active") === (row.active_version !== null)),
        );
        const { rows, next_cursor } = slicePage("policies", all, query);
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
      description: "As JSON or as YAML. It decides nothing before it is active: `?activate=true`, or POST …/activate.",
      responses: {
        200: { ...one, description: "It was stored by an earlier request with this Idempotency-Key." },
        201: { ...one, description: "Stored." },
      },
      errors: [...reads, "POLICY_NAME_TAKEN", "POLICY_MANAGED", "POLICY_NOT_FOUND", "IDEMPOTENCY_CONFLICT"],
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
        "All or nothing. A known name becomes a new version, or stays as it is when nothing changed. Errors carry line and column.",
      responses: { 200: { description: "What became of each.", schema: schema.Imported } },
      errors: [...reads, "POLICY_MANAGED"],
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
    defineRoute({
      method: "GET",
      path: "/v1/policies/:id",
      tag: TAG,
      summary: "Look at a policy",
      scope: "policies:read",
      params: id,
      query: schema.VersionQuery,
      responses: { 200: one },
      errors: ["POLICY_NOT_FOUND", "POLICY_VERSION_NOT_FOUND"],
      handle: async ({ params, query }) =>
        policyReply(host, await findPolicy(host.storage, params.id), { version: query.version }),
    }),
    defineRoute({
      method: "PUT",
      path: "/v1/policies/:id",
      tag: TAG,
      summary: "Make a new version",
      scope: "policies:write",
      params: id,
      headers: IF_MATCH,
      query: schema.ActivateQuery,
      body: schema.PolicyBody,
      textBodies: YAML_TYPES,
      bodyLimit: MAX_BODY,
      description:
        "Versions never change. The same definition again makes none. `If-Match` with the `ETag` that was seen refuses the change when another came first.",
      responses: { 200: one },
      errors: [...changed, ...reads],
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
        "An active one is deactivated first, which needs policies:activate too. Its versions stay for replay, and its name goes on counting them.",
      responses: { 200: { ...one, description: "The policy as it was left." } },
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
        "The newest when `version` is absent; an older one is a rollback. Every request is decided by the set before or by the set after.",
      responses: { 200: one },
      errors: [...changed, "POLICY_VERSION_NOT_FOUND", "POLICY_INVALID"],
      handle: async ({ params, body, headers, credential }) =>
        policyReply(host, await activatePolicy(host, params.id, body.version ?? null, headers, credential)),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/policies/:id/deactivate",
      tag: TAG,
      summary: "Take a policy out of the active set",
      scope: "policies:activate",
      params: id,
      headers: IF_MATCH,
      responses: { 200: one },
      errors: [...changed, "POLICY_INVALID"],
      handle: async ({ params, headers, credential }) =>
        policyReply(host, await deactivatePolicy(host, params.id, headers, credential)),
    }),
    shadowRoute(host, TAG),
    ...versionRoutes(host, TAG),
  ];
}
