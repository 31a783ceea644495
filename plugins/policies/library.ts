/** Policies and their versions, inside a batch: what is there, what a change would make, and the change. */
import { type Credential, type Host, type LedgerTransaction, Refusal } from "../../src/plugin.ts";
import type { PolicyRow, PolicyVersionRow, StorageReader } from "../../src/storage/index.ts";
import type { PolicyDocument, ParsedPolicy } from "../../src/core.ts";

type Reader = Pick<StorageReader, "policy" | "policyByName" | "policyVersion">;

/** By id or by name; deleted ones are not found. */
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

/** The source that manages it; one that is no longer configured manages nothing. */
export function managerOf({ managed_by }: PolicyRow, sources: readonly string[]): string | null {
  return managed_by !== null && sources.includes(managed_by) ? managed_by : null;
}

/** A policy that files manage is changed in the files, or the next load would undo the change. */
export function assertNotManaged(row: PolicyRow, sources: readonly string[]): void {
  if (row.active_version === null || managerOf(row, sources) === null) return;
  throw new Refusal(
    "POLICY_MANAGED",
    `the policy "${row.name}" is managed by ${row.managed_by} and read-only here; change it where it comes from`,
  );
}

export interface PlannedSave {
  id: string;
  name: string;
  version: number;
  outcome: "created" | "updated" | "unchanged";
  read: ParsedPolicy;
  row: PolicyRow | null;
}

/** What saving a policy would do. Reads only. Throws POLICY_MANAGED. */
export async function planSave(
  tx: LedgerTransaction,
  read: ParsedPolicy,
  { newId, policies }: Pick<Host, "newId" | "policies">,
): Promise<PlannedSave> {
  const name = read.document.policy;
  const row = await tx.policyByName(name);
  if (row === null) return { id: newId(), name, version: 1, outcome: "created", read, row };
  assertNotManaged(row, policies.sources);
  const latest = await tx.policyVersion(row.id, row.latest_version);
  const same = latest?.digest === read.digest;
  // A deleted policy's name comes back with its numbers: (policy, version) in a record means one thing forever.
  const outcome = row.deleted_at !== null ? "created" : same ? "unchanged" : "updated";
  return { id: row.id, name, version: row.latest_version + (same ? 0 : 1), outcome, read, row };
}

/** Resolves to what it wrote; `row`: a deleted policy came back with the version that it had. */
export async function save(
  tx: LedgerTransaction,
  plan: PlannedSave,
  who: Credential,
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
    digest: read.digest,
    created_by: who.key.id,
    created_at: tx.now,
  });
  return "version";
}

export function documentOf(row: PolicyVersionRow): PolicyDocument {
  return JSON.parse(row.definition) as PolicyDocument;
}
