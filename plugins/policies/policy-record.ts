/** Renders policies for the API. */
import {
  type CoreHost,
  findRuleWarnings,
  findUnknownChannels,
  isBaselinePolicy,
  type PolicyDocument,
} from "../../src/core.ts";
import { type Reply, toRfc3339 } from "../../src/plugin.ts";
import type { PolicyRow, PolicyVersionRow } from "../../src/storage/index.ts";
import { policyEtag } from "./policy-changes.ts";
import { parseStoredDocument, findVersion, findManagingSource } from "./stored-policies.ts";
import * as schema from "./schemas.ts";
import { findUnknownFactSources, findUnknownReviewers } from "./unknown-names.ts";

export const POLICY_RESPONSE = { description: "The policy.", schema: schema.PolicyRecord };

export async function policyReply(
  host: CoreHost,
  row: PolicyRow,
  { status = 200, version = row.latest_version }: { status?: number; version?: number | undefined } = {},
): Promise<Reply> {
  return {
    status,
    json: await renderPolicy(host, row, await findVersion(host.storage, row, version)),
    headers: { ETag: policyEtag(row) },
  };
}

/** Renders the policy. `mode` is always the mode of the active version. */
async function renderHead(host: CoreHost, row: PolicyRow, version: PolicyVersionRow) {
  const { id, name, active_version, latest_version } = row;
  const effective =
    (active_version ?? latest_version) === version.version
      ? version
      : await findVersion(host.storage, row, active_version ?? latest_version);
  return {
    id,
    name,
    description: parseStoredDocument(version).description ?? null,
    mode: parseStoredDocument(effective).mode ?? ("enforce" as const),
    managed_by: findManagingSource(row, host.policies.sources),
    baseline: isBaselinePolicy(row, host.policies.baselines),
    status: active_version === null ? ("inactive" as const) : ("active" as const),
    active_version,
    latest_version,
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
  };
}

export function renderVersion(row: PolicyVersionRow) {
  return {
    version: row.version,
    definition: parseStoredDocument(row) as unknown as Record<string, unknown>,
    yaml: row.yaml,
    digest: row.digest,
    created_by: row.created_by,
  };
}

export async function renderPolicy(
  host: CoreHost,
  row: PolicyRow,
  version: PolicyVersionRow,
): Promise<schema.PolicyRecord> {
  return {
    ...(await renderHead(host, row, version)),
    ...renderVersion(version),
    warnings: listWarnings(host, [parseStoredDocument(version)]),
  };
}

/** Returns a warning for each channel, reviewer and fact source that the policies name and the configuration lacks. */
export function findUnconfiguredNames(host: CoreHost, documents: readonly PolicyDocument[]): { message: string }[] {
  return [
    ...findUnknownChannels(documents, host.channels.names()),
    ...findUnknownReviewers(documents, host.reviewers.names()),
    ...findUnknownFactSources(documents, host.factSources.list()),
  ];
}

export function listWarnings(host: CoreHost, documents: readonly PolicyDocument[]): string[] {
  return [...findUnconfiguredNames(host, documents), ...documents.flatMap(findRuleWarnings)].map(
    ({ message }) => message,
  );
}

export async function renderSummary(
  host: CoreHost,
  row: PolicyRow,
  version: PolicyVersionRow,
): Promise<schema.PolicySummary> {
  const { rules } = parseStoredDocument(version);
  return { ...(await renderHead(host, row, version)), rules: rules.length, rule_names: rules.map(({ name }) => name) };
}
