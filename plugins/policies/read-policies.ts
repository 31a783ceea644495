/** Routes that list policies and read one policy. */
import type { CoreHost } from "../../src/core.ts";
import { defineRoute, nextLink, slicePage } from "../../src/plugin.ts";
import { policyReply, POLICY_RESPONSE, renderSummary } from "./policy-record.ts";
import * as schema from "./schemas.ts";
import { findPolicy, findVersion } from "./stored-policies.ts";

export function listRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/policies",
    tag,
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
  });
}

export function readRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/policies/:id",
    tag,
    summary: "Read a policy",
    scope: "policies:read",
    params: schema.PolicyParams,
    query: schema.VersionQuery,
    responses: { 200: POLICY_RESPONSE },
    errors: ["POLICY_NOT_FOUND", "POLICY_VERSION_NOT_FOUND"],
    handle: async ({ params, query }) =>
      policyReply(host, await findPolicy(host.storage, params.id), { version: query.version }),
  });
}
