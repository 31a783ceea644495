/**
 * What the ledger records. An entry's bytes are the canonical JSON (RFC 8785) of one of these with
 * `seq` added, so every field is covered by the leaf hash. Absent facts are null, never left out:
 * the set of members of a type does not depend on its values. Times are RFC 3339 UTC with
 * milliseconds, digests lowercase hex.
 */
import { canonicalBytes, withMember } from "./canonical.ts";
import { hashLeaf } from "./merkle.ts";
import type { Decision, RecordedFacts } from "./policy/types.ts";
import type { JsonObject } from "./json.ts";

/** Who did something: always taken from the credential, never from a body. */
export interface Actor {
  key_id: string;
  principal: string;
  agent_id: string | null;
  owner: string | null;
}

export interface DecisionEntry {
  type: "decision";
  /** From version 3 on the facts hold what was used of limits as a commitment; from 4 on `decision.approval` says `valid_for_ms`. */
  v: 1 | 2 | 3 | 4;
  action_id: string;
  at: string;
  agent_id: string;
  tool: string;
  operation: string;
  /** SHA-256(salt ‖ request_hash), both as raw bytes. */
  commitment: string;
  submitted_by: Actor;
  policy_set: string | null;
  facts: RecordedFacts;
  decision: Decision;
  status: "allowed" | "denied" | "pending_approval";
  expires_at: string | null;
  /** Until when it may start; null where it may not. From version 4 on; in 2 and 3 as `permit_expires_at`. */
  approved_until?: string | null;
  permit_expires_at?: string | null;
  /** SHA-256(salt ‖ SHA-256(canonical `{meta}`)), with a salt of its own; null where there is none. From version 4 on. */
  meta?: string | null;
}

export interface ApprovalEntry {
  type: "approval";
  v: 1 | 2 | 3;
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
  /** Until when it may start, or could where that is what expired; else null. From version 3 on; in 2 as `permit_expires_at`. */
  approved_until?: string | null;
  permit_expires_at?: string | null;
}

/**
 * An open action was decided again: somebody voted on it, was to start it or asked for a permit. Every time for a
 * permit; else where it is denied now, or more people have to approve.
 */
export interface RedecisionEntry {
  type: "redecision";
  /** Version 1 is of actions that were denied, and its facts are without what was used of limits. */
  v: 1 | 2;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  occasion: "vote" | "start" | "permit";
  /** Who voted, was to start it or asked. */
  by: Actor;
  policy_set: string | null;
  facts: RecordedFacts;
  decision: Decision;
  status: "denied" | "pending_approval" | "allowed" | "approved";
  /** How many have to approve, and until when they can, where they have to: as the action stands after it. From version 2 on. */
  quorum?: number | null;
  expires_at?: string | null;
}

export interface ExecutionEntry {
  type: "execution";
  v: 1 | 2 | 3;
  action_id: string;
  at: string;
  agent_id: string;
  commitment: string;
  phase: "start" | "result";
  by: Actor;
  /** SHA-256 of the permit that was used; null for a result, and from version 2 on where the submitter's key needed none. */
  permit: string | null;
  /** SHA-256 of what its caller named the start by; null for a result, and where it was not named. From version 3 on. */
  attempt?: string | null;
  success: boolean | null;
  /** SHA-256(salt ‖ SHA-256(canonical `{error, meta, success}`)); null for a start. */
  result: string | null;
  status: "executing" | "succeeded" | "failed";
}

/**
 * What was asked, what was used of limits, and what was reported are gone from the store: what other entries of the
 * action hold are commitments that nobody can open any more. Nothing follows it.
 */
export interface ErasureEntry {
  type: "erasure";
  v: 1;
  action_id: string;
  at: string;
  agent_id: string;
  /** The action's own, by which it was known before. */
  commitment: string;
  /** Somebody asked for it, or the time that the configuration keeps actions for was over. */
  cause: "asked" | "retention";
  /** Kept forever. */
  reason: string;
  /** Null for retention. */
  by: Actor | null;
}

/** A policy as a change left it. */
export interface PolicyChange {
  id: string;
  name: string;
  managed_by: string | null;
  /** The newest. */
  version: number;
  /** Of that version's definition, where this change made it; null where it made none. */
  digest: string | null;
  /** Version that decides; null when none does. */
  active: number | null;
  deleted: boolean;
}

export interface PolicySetEntry {
  type: "policy_set";
  v: 1 | 2;
  at: string;
  /** Digest before and after. */
  previous: string | null;
  policy_set: string | null;
  policy_count: number;
  /** Null above 200 policies: the digest covers them, and an entry has a limit. */
  policies: { policy: string; version: number }[] | null;
  /** Where it came from. With `refused` and `fault`: something was offered and not taken, and the set is the one before. */
  source: Record<string, string>;
  /** Every policy that was stored, changed or deleted; with many of them in several entries. The set may be the one before. From version 2 on. */
  changes?: PolicyChange[];
  by: Actor | null;
}

export interface KeyEntry {
  type: "api_key";
  /** From version 2 on the key's own times are the entry's, also of keys that nobody's key made. */
  v: 1 | 2;
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

/** Decisions were halted, or let go on. */
export interface StopEntry {
  type: "stop";
  v: 1;
  at: string;
  /** `lift_asked`: by fewer people than it takes; the stop holds. */
  change: "placed" | "lift_asked" | "lifted";
  /** As it was placed. */
  stop: {
    id: string;
    /** Globs; null for every one. */
    agent: string | null;
    tool: string | null;
    policy: string | null;
    reason: string;
    /** When it ends by itself, null when never. */
    until: string | null;
  };
  /** Of whoever lifts it. */
  comment: string | null;
  /** How many people asked for it to be lifted so far, this one included, and how many it takes. 0 where it was placed. */
  approvals: number;
  needed: number;
  by: Actor;
}

/** Permits are signed with another key from here on. The store's first key stands in no entry. */
export interface PermitKeyEntry {
  type: "permit_key";
  v: 1;
  at: string;
  /** Ed25519, 32 bytes in hex. */
  public_key: string;
  /** The one before. */
  previous: string;
  /** Until when its permits are taken. */
  previous_until: string;
  /** Null: an operator at the machine. */
  by: null;
}

/** `<plugin>:<type>` */
export type PluginEntryType = `${string}:${string}`;

/** A record of a plugin's own. `data` has the form that the plugin declares for the type. */
export interface PluginEntry {
  type: PluginEntryType;
  v: number;
  at: string;
  /** What it speaks of, null for nothing of the kind: keys that may see the action or the agent see the entry. */
  action_id: string | null;
  agent_id: string | null;
  data: JsonObject;
  by: Actor | null;
}

type CoreEntry =
  | DecisionEntry
  | ApprovalEntry
  | RedecisionEntry
  | ExecutionEntry
  | ErasureEntry
  | PolicySetEntry
  | KeyEntry
  | AgentEntry
  | StopEntry
  | PermitKeyEntry;
export type EntryBody = CoreEntry | PluginEntry;

/** Types that the core records. */
export const ENTRY_TYPES = [
  "decision",
  "approval",
  "redecision",
  "execution",
  "erasure",
  "policy_set",
  "api_key",
  "agent",
  "stop",
  "permit_key",
] as const satisfies readonly CoreEntry["type"][];
export type EntryType = (typeof ENTRY_TYPES)[number] | PluginEntryType;

/** Types that are few among the others, and that every process follows. */
export const FOLLOWED_TYPES = ["api_key", "agent", "stop", "permit_key"] as const satisfies readonly EntryType[];
export type FollowedType = (typeof FOLLOWED_TYPES)[number];

export function isCoreEntry(entry: EntryBody): entry is CoreEntry {
  return (ENTRY_TYPES as readonly string[]).includes(entry.type);
}

/** C2SP tlog-tiles: an entry's length is a uint16. */
export const MAX_ENTRY_BYTES = 65_535;

/** The bytes and the leaf hash of an entry that stands at `seq`. Throws RangeError above MAX_ENTRY_BYTES. */
export function sealEntry(body: EntryBody, seq: number): { bytes: Uint8Array; leafHash: Uint8Array } {
  const bytes = canonicalBytes(withMember(body as unknown as JsonObject, "seq", seq));
  if (bytes.length > MAX_ENTRY_BYTES) {
    throw new RangeError(`a ledger entry of ${bytes.length} bytes exceeds ${MAX_ENTRY_BYTES}`);
  }
  return { bytes, leafHash: hashLeaf(bytes) };
}

const decoder = new TextDecoder();

/** What an entry's bytes say; `Entry` is known from the row's type. Throws SyntaxError for bytes that are no entry. */
export function openEntry<Entry extends EntryBody | JsonObject = JsonObject>(
  bytes: Uint8Array,
): Entry & { seq: number } {
  return JSON.parse(decoder.decode(bytes)) as Entry & { seq: number };
}
