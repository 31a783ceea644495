/** Policies over the API: versions that never change, activation, rollback, differences, dry runs. */
import type { Credential, Host } from "../../src/contract/host.ts";
import type { Reply, RequestContext, Route } from "../../src/contract/resource.ts";
import type { PolicyRow, PolicyVersionRow } from "../../src/contract/storage.ts";
import { diffPolicies } from "../../src/domain/policy/diff.ts";
import { toRfc3339 } from "../../src/domain/time.ts";
import { definePlugin } from "../../src/plugin.ts";
import { idempotentCall, REPLAYED } from "../../src/toolkit/idempotency.ts";
import { nextLink, pageOf, type PageQuery } from "../../src/toolkit/paging.ts";
import { IF_MATCH } from "../../src/toolkit/preconditions.ts";
import { activatePolicy, createPolicy, deactivatePolicy, deletePolicy, etagOf, importPolicies, updatePolicy } from "./changes.ts";
import { dryRun } from "./dry-run.ts";
import { documentOf, findPolicy, findVersion, managerOf } from "./library.ts";
import { policiesFromYaml } from "../../src/toolkit/candidates.ts";
import { policyOf, YAML_TYPES } from "./read.ts";
import { Shadow, shadow, ShadowQuery } from "./shadow.ts";
import * as schema from "./schemas.ts";

/** YAML takes about a second a megabyte to parse, during which nothing is decided. */
const MAX_BODY = 512 * 1024;
const TAG = "policies";

export default definePlugin({ name: "policies", setup: (host) => ({ routes: routes(host) }) });

function routes(host: Host): Route[] {
  const activating = ({ query, credential }: RequestContext): { credential: Credential | null; activate: boolean } => ({ credential, activate: query["activate"] === true });

  async function answer(row: PolicyRow, status: number, version = row.latest_version): Promise<Reply> {
    return { status, json: show(host, row, await findVersion(host.storage, row, version)), headers: { ETag: etagOf(row) } };
  }

  async function list({ query }: RequestContext): Promise<Reply> {
    const asked = query as schema.ListQuery;
    const all = (await host.storage.policies()).filter(
      (row) => row.deleted_at === null && (asked.name === undefined || row.name === asked.name) && (asked.status === undefined || (asked.status === "active") === (row.active_version !== null)),
    );
    const { rows, next_cursor } = pageOf("policies", all, asked);
    const policies = await Promise.all(rows.map(async (row) => summary(host, row, await findVersion(host.storage, row, row.latest_version))));
    return { status: 200, json: { policies, next_cursor }, headers: nextLink("/v1/policies", asked, next_cursor) };
  }

  async function get({ params, query }: RequestContext): Promise<Reply> {
    return answer(await findPolicy(host.storage, params["id"] as string), 200, query["version"] as number | undefined);
  }

  async function create(context: RequestContext): Promise<Reply> {
    const read = policyOf(context);
    const { row, replayed } = await createPolicy(host, read, activating(context), idempotentCall(context.headers, "POST /v1/policies", { definition: read.text, activate: activating(context).activate }));
    const reply = await answer(row, replayed ? 200 : 201);
    return { ...reply, headers: { ...reply.headers, Location: `/v1/policies/${row.id}`, ...(replayed ? REPLAYED : {}) } };
  }

  async function update(context: RequestContext): Promise<Reply> {
    return answer(await updatePolicy(host, context.params["id"] as string, policyOf(context), context.headers, activating(context)), 200);
  }

  async function importYaml(context: RequestContext): Promise<Reply> {
    const yaml = typeof context.body === "string" ? context.body : (context.body as schema.ImportBody).yaml;
    const save = activating(context);
    const { plans, policySet } = await importPolicies(host, policiesFromYaml(yaml), save);
    const policies = plans.map(({ id, name, version, outcome, row }) => ({ id, name, version, outcome, active: save.activate || row?.active_version === version }));
    return { status: 200, json: { policies, policy_set: policySet } };
  }

  async function versions({ params, query }: RequestContext): Promise<Reply> {
    const row = await findPolicy(host.storage, params["id"] as string);
    // Ordered by number: a clock may go back.
    const all = (await host.storage.policyVersions(row.id)).map((version) => ({ version, id: row.id, created_at: version.version }));
    const { rows, next_cursor } = pageOf("versions", all, query as PageQuery);
    const json = {
      versions: rows.map(({ version }) => ({ ...body(version), active: version.version === row.active_version, created_at: toRfc3339(version.created_at) })),
      next_cursor,
    };
    return { status: 200, json, headers: nextLink(`/v1/policies/${row.id}/versions`, query, next_cursor) };
  }

  async function diff({ params, query }: RequestContext): Promise<Reply> {
    const row = await findPolicy(host.storage, params["id"] as string);
    const asked = query as { from?: number; to?: number };
    const to = asked.to ?? row.latest_version;
    const from = asked.from ?? (row.active_version !== null && row.active_version !== to ? row.active_version : Math.max(1, to - 1));
    const [before, after] = [await findVersion(host.storage, row, from), await findVersion(host.storage, row, to)];
    return { status: 200, json: { policy: row.name, from, to, changes: diffPolicies(documentOf(before), documentOf(after)) } };
  }

  async function remove({ params, headers, credential }: RequestContext): Promise<Reply> {
    const row = await deletePolicy(host, params["id"] as string, headers, credential);
    return { status: 200, json: show(host, row, await findVersion(host.storage, row, row.latest_version)) };
  }

  const one = { description: "The policy.", schema: schema.PolicyRecord };
  const changed = ["POLICY_NOT_FOUND", "POLICY_MANAGED", "PRECONDITION_FAILED"] as const;
  const id = schema.PolicyParams;
  return [
    {
      method: "GET", path: "/v1/policies", tag: TAG, summary: "List policies, newest first", scope: "policies:read", query: schema.ListQuery,
      responses: { 200: { description: "A page.", schema: schema.PolicyList } }, errors: ["INVALID_CURSOR"], handle: list,
    },
    {
      method: "POST", path: "/v1/policies", tag: TAG, summary: "Store a policy", scope: "policies:write", query: schema.ActivateQuery, body: schema.PolicyBody, textBodies: YAML_TYPES, bodyLimit: MAX_BODY, idempotent: true,
      description: "As JSON or as YAML. It decides nothing before it is active: `?activate=true`, or POST …/activate.",
      responses: { 200: { ...one, description: "It was stored by an earlier request with this Idempotency-Key." }, 201: { ...one, description: "Stored." } },
      errors: ["POLICY_INVALID", "POLICY_NAME_TAKEN", "POLICY_MANAGED", "POLICY_NOT_FOUND", "IDEMPOTENCY_CONFLICT"], handle: create,
    },
    {
      method: "POST", path: "/v1/policies/import-yaml", tag: TAG, summary: "Store several policies at once", scope: "policies:write", query: schema.ActivateQuery, body: schema.ImportBody, textBodies: YAML_TYPES, bodyLimit: MAX_BODY,
      description: "All or nothing. A known name becomes a new version, or stays as it is when nothing changed. Errors carry line and column.",
      responses: { 200: { description: "What became of each.", schema: schema.Imported } }, errors: ["POLICY_INVALID", "POLICY_MANAGED"], handle: importYaml,
    },
    {
      method: "POST", path: "/v1/policies/dry-run", tag: TAG, summary: "What a candidate would decide", scope: "policies:read", body: schema.DryRunBody, bodyLimit: MAX_BODY,
      description: "Decides sample actions with the active set and with the candidate in it. Records nothing, and knows no registered agents.",
      responses: { 200: { description: "Both decisions of each action.", schema: schema.DryRun } }, errors: ["POLICY_INVALID"], handle: (context) => dryRun(host, context.body as schema.DryRunBody),
    },
    {
      method: "GET", path: "/v1/policies/:id", tag: TAG, summary: "Look at a policy", scope: "policies:read", params: id, query: schema.VersionQuery,
      responses: { 200: one }, errors: ["POLICY_NOT_FOUND", "POLICY_VERSION_NOT_FOUND"], handle: get,
    },
    {
      method: "PUT", path: "/v1/policies/:id", tag: TAG, summary: "Make a new version", scope: "policies:write", params: id, headers: IF_MATCH, query: schema.ActivateQuery, body: schema.PolicyBody, textBodies: YAML_TYPES, bodyLimit: MAX_BODY,
      description: "Versions never change. The same definition again makes none. `If-Match` with the `ETag` that was seen refuses the change when another came first.",
      responses: { 200: one }, errors: [...changed, "POLICY_INVALID"], handle: update,
    },
    {
      method: "DELETE", path: "/v1/policies/:id", tag: TAG, summary: "Delete a policy", scope: "policies:write", params: id, headers: IF_MATCH,
      description: "An active one is deactivated first, which needs policies:activate too. Its versions stay for replay, and its name goes on counting them.",
      responses: { 200: { ...one, description: "The policy as it was left." } }, errors: [...changed, "POLICY_INVALID"], handle: remove,
    },
    {
      method: "POST", path: "/v1/policies/:id/activate", tag: TAG, summary: "Activate a version", scope: "policies:activate", params: id, headers: IF_MATCH, body: schema.ActivateBody, bodyOptional: true,
      description: "The newest when `version` is absent; an older one is a rollback. Every request is decided by the set before or by the set after.",
      responses: { 200: one }, errors: [...changed, "POLICY_VERSION_NOT_FOUND", "POLICY_INVALID"],
      handle: async ({ params, body: wanted, headers, credential }) => answer(await activatePolicy(host, params["id"] as string, (wanted as schema.ActivateBody).version ?? null, headers, credential), 200),
    },
    {
      method: "POST", path: "/v1/policies/:id/deactivate", tag: TAG, summary: "Take a policy out of the active set", scope: "policies:activate", params: id, headers: IF_MATCH,
      responses: { 200: one }, errors: [...changed, "POLICY_INVALID"],
      handle: async ({ params, headers, credential }) => answer(await deactivatePolicy(host, params["id"] as string, headers, credential), 200),
    },
    {
      method: "GET", path: "/v1/policies/:id/shadow", tag: TAG, summary: "What a policy in shadow mode would have changed", scope: "policies:read", params: id, query: ShadowQuery,
      description: "Of the decisions of a range that the policy had a say in while it was in shadow mode: those that would have come out otherwise had it been enforced, grouped, with examples that the key may see.",
      responses: { 200: { description: "What would have flipped.", schema: Shadow } }, errors: ["POLICY_NOT_FOUND", "INVALID_RANGE"], handle: (context) => shadow(host, context),
    },
    {
      method: "GET", path: "/v1/policies/:id/versions", tag: TAG, summary: "List a policy's versions, newest first", scope: "policies:read", params: id, query: schema.PageQuery,
      responses: { 200: { description: "A page.", schema: schema.VersionList } }, errors: ["POLICY_NOT_FOUND", "INVALID_CURSOR"], handle: versions,
    },
    {
      method: "GET", path: "/v1/policies/:id/diff", tag: TAG, summary: "What changed between two versions", scope: "policies:read", params: id, query: schema.DiffQuery,
      description: "In rules and effects. Without `from` and `to`: from the active version to the newest, or to it from the one before.",
      responses: { 200: { description: "The changes.", schema: schema.Diff } }, errors: ["POLICY_NOT_FOUND", "POLICY_VERSION_NOT_FOUND"], handle: diff,
    },
  ];
}

function head(host: Host, row: PolicyRow, version: PolicyVersionRow) {
  const { id, name, active_version, latest_version } = row;
  const { description, mode } = documentOf(version);
  return {
    id, name, description: description ?? null, mode: mode ?? ("enforce" as const), managed_by: managerOf(row, host.policies.sources),
    status: active_version === null ? ("inactive" as const) : ("active" as const),
    active_version, latest_version, created_at: toRfc3339(row.created_at), updated_at: toRfc3339(row.updated_at),
  };
}

function body(row: PolicyVersionRow) {
  return { version: row.version, definition: documentOf(row) as unknown as Record<string, unknown>, digest: row.digest, created_by: row.created_by };
}

function show(host: Host, row: PolicyRow, version: PolicyVersionRow): schema.PolicyRecord {
  return { ...head(host, row, version), ...body(version) };
}

function summary(host: Host, row: PolicyRow, version: PolicyVersionRow): schema.PolicySummary {
  return { ...head(host, row, version), rules: documentOf(version).rules.length };
}
