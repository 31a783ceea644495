/**
 * What the ledger records. An entry's bytes are the canonical JSON (RFC 8785) of one of these with
 * `seq` added, so every field is covered by the leaf hash. Absent facts are null, never left out:
 * the set of members of a type does not depend on its values. Times are RFC 3339 UTC with
 * milliseconds, digests lowercase hex.
 */
import { canonicalBytes, insertMember } from "./canonical.ts";
import { hashLeaf } from "./merkle.ts";
import type { JsonObject } from "./json.ts";
import type {
  Actor,
  ApprovalEntry,
  DecisionEntry,
  ErasureEntry,
  ExecutionEntry,
  RedecisionEntry,
} from "./entries/actions.ts";
import type {
  AgentEntry,
  KeyEntry,
  LogKeyEntry,
  PermitKeyEntry,
  PolicySetEntry,
  StopEntry,
} from "./entries/service.ts";

export type * from "./entries/actions.ts";
export type * from "./entries/service.ts";

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
  | PermitKeyEntry
  | LogKeyEntry;
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
  "log_key",
] as const satisfies readonly CoreEntry["type"][];
export type EntryType = (typeof ENTRY_TYPES)[number] | PluginEntryType;

/** Types that are few among the others, and that every process follows. */
export const FOLLOWED_TYPES = [
  "api_key",
  "agent",
  "stop",
  "permit_key",
  "log_key",
] as const satisfies readonly EntryType[];
export type FollowedType = (typeof FOLLOWED_TYPES)[number];

export function isCoreEntry(entry: EntryBody): entry is CoreEntry {
  return (ENTRY_TYPES as readonly string[]).includes(entry.type);
}

/** C2SP tlog-tiles: an entry's length is a uint16. */
export const MAX_ENTRY_BYTES = 65_535;

/** The bytes and the leaf hash of an entry that stands at `seq`. Throws RangeError above MAX_ENTRY_BYTES. */
export function encodeEntry(body: EntryBody, seq: number): { bytes: Uint8Array; leafHash: Uint8Array } {
  const bytes = canonicalBytes(insertMember(body as unknown as JsonObject, "seq", seq));
  if (bytes.length > MAX_ENTRY_BYTES) {
    throw new RangeError(`a ledger entry of ${bytes.length} bytes exceeds ${MAX_ENTRY_BYTES}`);
  }
  return { bytes, leafHash: hashLeaf(bytes) };
}

const decoder = new TextDecoder();

/** What an entry's bytes say; `Entry` is known from the row's type. Throws SyntaxError for bytes that are no entry. */
export function decodeEntry<Entry extends EntryBody | JsonObject = JsonObject>(
  bytes: Uint8Array,
): Entry & { seq: number } {
  return JSON.parse(decoder.decode(bytes)) as Entry & { seq: number };
}
