/** Policies, their versions, and the sets of them that were ever active. */

import type { PolicyColumns, PolicyText, PolicyVersionColumns } from "../../domain/recorded-policies.ts";

export type PolicyRow = PolicyColumns;

/** A version of a policy, which is immutable. */
export interface PolicyVersionRow extends PolicyVersionColumns, PolicyText {
  policy_id: string;
  version: number;
}

/** A policy set, which is immutable and never deleted. `document` is canonical JSON; `digest` its SHA-256, hex. */
export interface PolicySetRow {
  digest: string;
  document: string;
  created_at: number;
}

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
  /** Replaces the row with this id, except for its name and the time of its creation. False if there is none. */
  updatePolicy(row: PolicyRow): Promise<boolean>;
  insertPolicyVersion(row: PolicyVersionRow): Promise<void>;
  /** Stores a policy set. Does nothing if a row with this digest exists. */
  putPolicySet(row: PolicySetRow): Promise<void>;
}
