/** Finds policies and versions, plans changes to them and saves them, within a transaction. */
import type { CoreHost, LedgerTransaction, ParsedPolicy, PolicyDocument } from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { PolicyRow, PolicyVersionRow, StorageReader } from "../../src/storage/index.ts";

type Reader = Pick<StorageReader, "policy" | "policyByName" | "policyVersion">;

/** Finds a policy by id or name. Throws POLICY_NOT_FOUND if there is no such policy or it was deleted. */
export async function findPolicy(reader: Reader, idOrName: string): Promise<PolicyRow> {
  const row = (await reader.policy(idOrName)) ?? (await reader.policyByName(idOrName));
  if (row === null || row.deleted_at !== null)
    throw new Refusal("POLICY_NOT_FOUND", `there is no policy "${idOrName}"`);
  return row;
}

export async function findVersion(reader: Reader, row: PolicyRow, version: number): Promise<PolicyVersionRow> {
  const versionRow = await reader.policyVersion(row.id, version);
  if (versionRow === null)
    throw new Refusal(
      "POLICY_VERSION_NOT_FOUND",
      `the policy "${row.name}" has no version ${version}; its newest is ${row.latest_version}`,
    );
  return versionRow;
}

/** Returns the configured source that manages the policy; null if there is none, or it is no longer configured. */
export function findManagingSource({ managed_by }: PolicyRow, sources: readonly string[]): string | null {
  return managed_by !== null && sources.includes(managed_by) ? managed_by : null;
}

/** Throws POLICY_MANAGED for an active policy of a source, because the next load of the source would undo a change. */
export function assertNotManaged(row: PolicyRow, sources: readonly string[]): void {
  if (row.active_version === null || findManagingSource(row, sources) === null) return;
  throw new Refusal(
    "POLICY_MANAGED",
    `the policy "${row.name}" is managed by ${row.managed_by} and read-only in the API; change it in its source`,
  );
}

export interface PlannedPolicySave {
  id: string;
  name: string;
  version: number;
  outcome: "created" | "updated" | "unchanged";
  read: ParsedPolicy;
  row: PolicyRow | null;
}

/** Plans how to save a policy. Writes nothing. Throws POLICY_MANAGED if a source manages the policy. */
export async function planPolicySave(
  tx: LedgerTransaction,
  read: ParsedPolicy,
  { newId, policies }: Pick<CoreHost, "newId" | "policies">,
): Promise<PlannedPolicySave> {
  const name = read.document.policy;
  const row = await tx.policyByName(name);
  if (row === null) return { id: newId(), name, version: 1, outcome: "created", read, row };
  assertNotManaged(row, policies.sources);
  const latest = await tx.policyVersion(row.id, row.latest_version);
  // A policy in YAML gets a new version even if only a comment changed, so that no comment is lost.
  const same = latest?.digest === read.digest && (read.yaml === null || read.yaml === latest.yaml);
  // A policy with the name of a deleted policy continues its version numbers, so that (policy, version) in a record
  // stays unambiguous.
  const outcome = row.deleted_at !== null ? "created" : same ? "unchanged" : "updated";
  return { id: row.id, name, version: row.latest_version + (same ? 0 : 1), outcome, read, row };
}

/**
 * Saves the policy. Resolves to what was written: a new version, only the policy's row (a deleted policy was restored
 * with its version), or nothing.
 */
export async function savePolicy(
  tx: LedgerTransaction,
  plan: PlannedPolicySave,
  caller: Credential,
): Promise<"version" | "row" | "nothing"> {
  const { id, name, version, row, read } = plan;
  const isNew = row === null || version !== row.latest_version;
  if (row === null) {
    await tx.insertPolicy({
      id,
      name,
      managed_by: null,
      latest_version: version,
      active_version: null,
      deleted_at: null,
      created_at: tx.now,
      updated_at: tx.now,
    });
  } else if (plan.outcome !== "unchanged") {
    await tx.updatePolicy(id, { managed_by: null, latest_version: version, deleted_at: null, updated_at: tx.now });
  }
  if (!isNew) return plan.outcome === "unchanged" ? "nothing" : "row";
  await tx.insertPolicyVersion({
    policy_id: id,
    version,
    definition: read.text,
    yaml: read.yaml,
    digest: read.digest,
    created_by: caller.key.id,
    created_at: tx.now,
  });
  return "version";
}

export function parseStoredDocument(row: PolicyVersionRow): PolicyDocument {
  return JSON.parse(row.definition) as PolicyDocument;
}
