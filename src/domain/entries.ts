/**
 * The entries that the ledger records. An entry's bytes are the canonical JSON (RFC 8785) of one of these types with
 * `seq` added, so the leaf hash covers every field. A missing value is null. Only members that the type declares
 * optional can be absent. Times are RFC 3339 UTC with milliseconds. Digests are lowercase hex.
 */
import { canonicalBytes, insertMember } from "./canonical.ts";
import { hashLeaf } from "./merkle.ts";
import type { JsonObject } from "./json.ts";
import type { Actor, ChangeEntry, DecisionEntry, ErasingEntry } from "./entries/actions.ts";
import type {
  AgentEntry,
  DelegationEntry,
  ApiKeyEntry,
  LogKeyEntry,
  PermitKeyEntry,
  PolicySetEntry,
  UserEntry,
} from "./entries/service.ts";

export type * from "./entries/actions.ts";
export type * from "./entries/service.ts";

/** Type of an entry that a plugin records: `<plugin>:<type>`. */
export type PluginEntryType = `${string}:${string}`;

/** An entry that a plugin records. `data` has the schema that the plugin declares for the type. */
export interface PluginEntry {
  type: PluginEntryType;
  v: number;
  at: string;
  /**
   * The action and the agent that the entry is about, or null. Keys that can see the action or the agent can see the
   * entry.
   */
  action_id: string | null;
  agent_id: string | null;
  data: JsonObject;
  by: Actor | null;
}

/**
 * The entries of features, by type. A feature adds its own with a module augmentation, and declares the schema as
 * `Plugin.records`.
 */
// oxlint-disable-next-line typescript/no-empty-interface
export interface FeatureEntries {}

type FeatureEntry = FeatureEntries[keyof FeatureEntries];
type CoreEntry =
  | DecisionEntry
  | ChangeEntry
  | ErasingEntry
  | PolicySetEntry
  | ApiKeyEntry
  | AgentEntry
  | UserEntry
  | DelegationEntry
  | PermitKeyEntry
  | LogKeyEntry;
export type EntryBody = CoreEntry | FeatureEntry | PluginEntry;

/** Entry types that the core records. */
export const ENTRY_TYPES = [
  "decision",
  "approval",
  "redecision",
  "question",
  "review",
  "execution",
  "erasure",
  "part_erasure",
  "policy_set",
  "api_key",
  "agent",
  "user",
  "delegation",
  "permit_key",
  "log_key",
] as const satisfies readonly CoreEntry["type"][];
export type EntryType = (typeof ENTRY_TYPES)[number] | keyof FeatureEntries | PluginEntryType;

export function isPluginEntry(entry: Pick<EntryBody, "type">): entry is PluginEntry {
  return entry.type.includes(":");
}

/**
 * Returns whether the entry's type belongs to the core, not to a feature or plugin.
 * @example
 * if (isCoreEntry(entry) && entry.type === "decision") index(entry.action_id);
 */
export function isCoreEntry(entry: EntryBody): entry is CoreEntry {
  return (ENTRY_TYPES as readonly string[]).includes(entry.type);
}

/** Maximum size of an entry, because C2SP tlog-tiles stores its length as a uint16. */
export const MAX_ENTRY_BYTES = 65_535;

/**
 * Encodes an entry with sequence number `seq`. Returns its bytes and its leaf hash. Throws RangeError if it exceeds
 * MAX_ENTRY_BYTES.
 */
export function encodeEntry(body: EntryBody, seq: number): { bytes: Uint8Array; leafHash: Uint8Array } {
  const bytes = canonicalBytes(insertMember(body as unknown as JsonObject, "seq", seq));
  if (bytes.length > MAX_ENTRY_BYTES) {
    throw new RangeError(`a ledger entry of ${bytes.length} bytes exceeds ${MAX_ENTRY_BYTES}`);
  }
  return { bytes, leafHash: hashLeaf(bytes) };
}

const decoder = new TextDecoder();

/**
 * Decodes an entry. Does not check that the entry is of the type `Entry`, which the caller knows from the type in the
 * row. Throws SyntaxError if the bytes are not JSON.
 * @example
 * const { seq, type } = decodeEntry<EntryBody>(row.bytes);
 */
export function decodeEntry<Entry extends EntryBody | JsonObject = JsonObject>(
  bytes: Uint8Array,
): Entry & { seq: number } {
  return JSON.parse(decoder.decode(bytes)) as Entry & { seq: number };
}
