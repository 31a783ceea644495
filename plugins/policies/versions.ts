/** Routes that list the versions of a policy and compare two of them. */
import { type CoreHost, diffPolicies } from "../../src/core.ts";
import { defineRoute, nextLink, slicePage, toRfc3339 } from "../../src/plugin.ts";
import { parseStoredDocument, findPolicy, findVersion } from "./stored-policies.ts";
import * as schema from "./schemas.ts";
import { renderVersion } from "./policy-record.ts";

export function versionRoutes(host: CoreHost, tag: string) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/policies/:id/versions",
      tag,
      summary: "List a policy's versions, newest first",
      scope: "policies:read",
      params: schema.PolicyParams,
      query: schema.PageQuery,
      responses: { 200: { description: "A page.", schema: schema.VersionList } },
      errors: ["POLICY_NOT_FOUND", "INVALID_CURSOR"],
      async handle({ params, query }) {
        const row = await findPolicy(host.storage, params.id);
        // Sort by version number instead of time, because the clock might have been set back.
        const versions = (await host.storage.policyVersions(row.id)).map((version) => ({
          version,
          id: row.id,
          created_at: version.version,
        }));
        const { rows, next_cursor } = slicePage("versions", versions, query);
        const json = {
          versions: rows.map(({ version }) => ({
            ...renderVersion(version),
            active: version.version === row.active_version,
            created_at: toRfc3339(version.created_at),
          })),
          next_cursor,
        };
        return { status: 200, json, headers: nextLink(`/v1/policies/${row.id}/versions`, query, next_cursor) };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/policies/:id/diff",
      tag,
      summary: "Compare two versions of a policy",
      scope: "policies:read",
      params: schema.PolicyParams,
      query: schema.DiffQuery,
      description:
        "Compares rules and effects. Default: from the active version to the latest version. If these are the same, or no version is active, from the version before.",
      responses: { 200: { description: "The changes.", schema: schema.Diff } },
      errors: ["POLICY_NOT_FOUND", "POLICY_VERSION_NOT_FOUND"],
      async handle({ params, query }) {
        const row = await findPolicy(host.storage, params.id);
        const to = query.to ?? row.latest_version;
        const from =
          query.from ??
          (row.active_version !== null && row.active_version !== to ? row.active_version : Math.max(1, to - 1));
        const [before, after] = [await findVersion(host.storage, row, from), await findVersion(host.storage, row, to)];
        return {
          status: 200,
          json: {
            policy: row.name,
            from,
            to,
            changes: diffPolicies(parseStoredDocument(before), parseStoredDocument(after)),
          },
        };
      },
    }),
  ];
}
