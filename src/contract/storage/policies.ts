/** Policies, their versions, and the sets of them that were ever active. */

/** A policy of the API or of a policy source, without its definition. */
export interface PolicyRow {
  id: string;
  name: string;
  /** Name of the policy source that manages the policy; null if the API manages it. */
  managed_by: string | null;
  latest_version: number;
  active_version: number | null;
  /** Time of the deletion. A deleted policy keeps its name and versions, because recorded decisions refer to them. */
  deleted_at: number | null;
  created_at: number;
  updated_at: number;
}

/**
 * A version of a policy, which is immutable. `definition` is canonical JSON of a PolicyDocument; `digest` its SHA-256,
 * hex. `yaml` is the source that the author wrote, with its comments; null if the policy was sent as JSON, with other
 * policies, or by a policy source.
 */
export interface PolicyVersionRow {
  policy_id: string;
  version: number;
  definition: string;
  yaml: string | null;
  digest: string;
  created_by: string | null;
  created_at: number;
}

/** A policy set, which is immutable and never deleted. `document` is canonical JSON; `digest` its SHA-256, hex. */
export interface PolicySetRow {
  digest: string;
  document: string;
  created_at: number;
}

export type PolicyChange = Partial<
  Pick<PolicyRow, "managed_by" | "latest_version" | "active_version" | "deleted_at">
> & { updated_at: number };

export interface PolicyReads {
  policy(id: string): Promise<PolicyRow | null>;
  policyByName(name: string): Promise<PolicyRow | null>;
  /** Lists policies, sorted by name, including deleted policies. */
  policies(): Promise<PolicyRow[]>;
  policyVersion(policyId: string, version: number): Promise<PolicyVersionRow | null>;
  /** Lists versions, newest first. */
  policyVersions(policyId: string): Promise<PolicyVersionRow[]>;
  policySet(digest: string): Promise<PolicySetRow | null>;
}

export interface PolicyWrites {
  insertPolicy(row: PolicyRow): Promise<void>;
  updatePolicy(id: string, change: PolicyChange): Promise<boolean>;
  insertPolicyVersion(row: PolicyVersionRow): Promise<void>;
  /** Stores a policy set. Does nothing if a row with this digest exists. */
  putPolicySet(row: PolicySetRow): Promise<void>;
}
