/** Finds policies and versions, and plans changes to them, within a transaction. */
import {
  type ChangedPolicy,
  type CoreHost,
  type LedgerTransaction,
  newPolicy,
  type ParsedPolicy,
  type PolicyDocument,
  type PolicyUpdate,
} from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
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

/** Returns the policy after the save; null if the save changes nothing. */
export function toPolicyUpdate(
  { id, name, version, outcome, row, read }: PlannedPolicySave,
  activate: boolean,
): PolicyUpdate | null {
  const activates = activate && row?.active_version !== version;
  if (outcome === "unchanged" && !activates) return null;
  const policy: ChangedPolicy = {
    ...(row ?? newPolicy(id, name)),
    managed_by: null,
    latest_version: version,
    deleted_at: null,
  };
  if (activates) policy.active_version = version;
  const isNewVersion = row?.latest_version !== version;
  return { policy, text: isNewVersion ? { definition: read.text, yaml: read.yaml } : null };
}

export function parseStoredDocument(row: PolicyVersionRow): PolicyDocument {
  return JSON.parse(row.definition) as PolicyDocument;
}
