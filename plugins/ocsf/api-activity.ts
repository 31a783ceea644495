/**
 * Renders a ledger entry as an event of OCSF 1.9, class API Activity (6003), with the entry and its inclusion proof.
 */
import { type Actor, decodeEntry, type Decision, toHex } from "../../src/core.ts";
import type { EntryRow } from "../../src/storage/index.ts";

const CATEGORY = 6;
const CLASS = 6003;
/** Values of `activity_id` in this class. */
const ACTIVITY = { create: 1, read: 2, update: 3, delete: 4, other: 99 } as const;
/** Values of `action_id` and `disposition_id` in the profile security_control. */
const CONTROL = {
  allow: { action_id: 1, action: "Allowed", disposition_id: 1, disposition: "Allowed" },
  deny: { action_id: 2, action: "Denied", disposition_id: 2, disposition: "Blocked" },
  require_approval: { action_id: 99, action: "Requires approval", disposition_id: 14, disposition: "Delayed" },
} as const;

export interface ApiActivity {
  class_uid: typeof CLASS;
  metadata: { uid: string; sequence: number; [member: string]: unknown };
  [member: string]: unknown;
}

/**
 * The members that this module reads. Which of them an entry has depends on its type; types of plugins are unknown
 * here.
 */
type AnyEntry = {
  type: string;
  at: string;
  by?: Actor | null;
  submitted_by?: Actor;
  decision?: Decision;
  status?: string;
  success?: boolean | null;
  verdict?: string;
  change?: string;
  phase?: string;
  agent_id?: string | null;
  tool?: string;
  operation?: string;
  action_id?: string | null;
};

/**
 * Returns the event of an entry.
 * @param proof inclusion proof of the entry, as C2SP tlog-proof
 * @param source the log and the version of this program
 */
export function toApiActivity(row: EntryRow, proof: string, source: { origin: string; version: string }): ApiActivity {
  const entry = decodeEntry(row.bytes) as unknown as AnyEntry;
  const actor = entry.submitted_by ?? entry.by ?? null;
  const activity = entry.type === "decision" ? ACTIVITY.create : activityOf(entry);
  const hash = toHex(row.leaf_hash);
  return {
    class_uid: CLASS,
    category_uid: CATEGORY,
    activity_id: activity,
    ...(activity === ACTIVITY.other ? { activity_name: entry.type } : {}),
    type_uid: CLASS * 100 + activity,
    severity_id: 1,
    time: row.created_at,
    message: describe(entry),
    ...outcomeOf(entry),
    actor: actor === null ? { app_name: "assent" } : { user: userOf(actor) },
    ...(typeof entry.agent_id === "string" ? { ai_agent: { uid: entry.agent_id, name: entry.agent_id } } : {}),
    api: {
      operation: entry.operation ?? `${entry.type}.${entry.verdict ?? entry.change ?? entry.phase ?? "recorded"}`,
      service: { name: entry.tool ?? "assent" },
      ...(typeof entry.action_id === "string" ? { request: { uid: entry.action_id } } : {}),
    },
    // The ledger records who the caller is, but not the caller's address.
    src_endpoint: { name: entry.agent_id ?? actor?.principal ?? "assent", uid: actor?.key_id ?? source.origin },
    metadata: {
      version: "1.9.0",
      product: { name: "Assent", vendor_name: "Assent", version: source.version },
      profiles: ["ai_operation", "security_control"],
      log_name: source.origin,
      event_code: entry.type,
      uid: hash,
      sequence: row.seq,
      original_time: entry.at,
      ...(typeof entry.action_id === "string" ? { correlation_uid: entry.action_id } : {}),
    },
    // The exact leaf of the ledger. The proof covers its UTF-8 bytes.
    raw_data: new TextDecoder().decode(row.bytes),
    unmapped: { leaf_hash: hash, tlog_proof: proof },
  };
}

function activityOf({ change = "", verdict, type }: AnyEntry): (typeof ACTIVITY)[keyof typeof ACTIVITY] {
  if (type === "erasure" || type === "part_erasure" || ["revoked", "ended", "lifted", "released"].includes(change))
    return ACTIVITY.delete;
  if (["created", "registered", "placed", "granted", "used"].includes(change)) return ACTIVITY.create;
  return change !== "" || verdict !== undefined || type === "policy_set" ? ACTIVITY.update : ACTIVITY.other;
}

/** Returns the members for the status and for the profile security_control. */
function outcomeOf({ decision, success, status }: AnyEntry): Record<string, unknown> {
  if (decision !== undefined)
    return {
      ...CONTROL[decision.effect],
      status_id: decision.effect === "deny" ? 2 : 1,
      status_code: decision.reason_code,
      status_detail: decision.reason,
    };
  if (typeof success === "boolean") return { status_id: success ? 1 : 2 };
  return status === undefined ? { status_id: 1 } : { status_id: 1, status_code: status };
}

function userOf({ key_id, principal, owner }: Actor): Record<string, unknown> {
  return { uid: principal, name: principal, credential_uid: key_id, type_id: owner === null ? 4 : 1 };
}

function describe({ type, tool, operation, decision, agent_id, status, change }: AnyEntry): string {
  if (decision !== undefined && tool !== undefined)
    return `${decision.effect}: ${agent_id ?? ""} ${tool} ${operation ?? ""}: ${decision.reason}`;
  return [type, change ?? status ?? ""].filter((word) => word !== "").join(" ");
}
