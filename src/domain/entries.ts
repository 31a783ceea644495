/**
 * What the ledger records. An entry's bytes are the canonical JSON (RFC 8785) of one of these with
 * `seq` added, so every field is covered by the leaf hash. Absent facts are null, never left out:
 * the set of members of a type does not depend on its values. Times are RFC 3339 UTC with
 * milliseconds, digests lowercase hex.
 */
import { canonicalBytes } from "./canonical.ts";
import { hashLeaf } from "./merkle.ts";
import type { Decision, Facts } from "./policy/types.ts";
import type { JsonObject, JsonValue } from "./json.ts";

/** Who did something: always taken from the credential, never from a body. */
export interface Actor {
  key_id: string;
  principal: string;
  agent_id: string | null;
  owner: string | null;
}

export interface DecisionEntry {
  type: "decision";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  tool: string;
  operation: string;
  /** SHA-256(salt ‖ request_hash), both as raw bytes. */
  commitment: string;
  submitted_by: Actor;
  policy_set: string | null;
  facts: Facts;
  decision: Decision;
  status: "allowed" | "denied" | "pending_approval";
  expires_at: string | null;
}

export interface ApprovalEntry {
  type: "approval";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  /** `expired` and `cancelled` are outcomes without a verdict. */
  verdict: "approve" | "deny" | "expired" | "cancelled";
  /** Null when the clock decided. */
  by: Actor | null;
  comment: string | null;
  self_approval: boolean;
  /** Distinct approvers so far, this one included, and how many are needed. */
  approvals: number;
  quorum: number;
  status: "pending_approval" | "approved" | "denied" | "expired" | "cancelled";
}

export interface ExecutionEntry {
  type: "execution";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  phase: "start" | "result";
  by: Actor;
  /** SHA-256 of the permit that was used; null for a result. */
  permit: string | null;
  success: boolean | null;
  /** SHA-256(salt ‖ SHA-256(canonical `{error, meta, success}`)); null for a start. */
  result: string | null;
  status: "executing" | "succeeded" | "failed";
}

export interface PolicySetEntry {
  type: "policy_set";
  v: 1;
  at: string;
  /** Digest before and after. */
  previous: string | null;
  policy_set: string | null;
  policy_count: number;
  /** Null above 200 policies: the digest covers them, and an entry has a limit. */
  policies: { policy: string; version: number }[] | null;
  /** Where it came from. With `refused` and `fault`: something was offered and not taken, and the set is the one before. */
  source: Record<string, string>;
  by: Actor | null;
}

export interface KeyEntry {
  type: "api_key";
  v: 1;
  at: string;
  change: "created" | "revoked";
  key: {
    id: string;
    name: string;
    hash: string;
    scopes: string[];
    agent_id: string | null;
    owner: string | null;
    expires_at: string | null;
  };
  by: Actor | null;
}

export interface AgentEntry {
  type: "agent";
  v: 1;
  at: string;
  change: "registered" | "updated" | "suspended" | "resumed";
  agent: JsonObject;
  by: Actor | null;
}

export type EntryBody = DecisionEntry | ApprovalEntry | ExecutionEntry | PolicySetEntry | KeyEntry | AgentEntry;

/** C2SP tlog-tiles: an entry's length is a uint16. */
export const MAX_ENTRY_BYTES = 65_535;

/** The bytes and the leaf hash of an entry that stands at `seq`. Throws RangeError above MAX_ENTRY_BYTES. */
export function sealEntry(body: EntryBody, seq: number): { bytes: Uint8Array; leafHash: Uint8Array } {
  const bytes = canonicalBytes({ ...body, seq } as unknown as JsonValue);
  if (bytes.length > MAX_ENTRY_BYTES) {
    throw new RangeError(`a ledger entry of ${bytes.length} bytes exceeds ${MAX_ENTRY_BYTES}`);
  }
  return { bytes, leafHash: hashLeaf(bytes) };
}
