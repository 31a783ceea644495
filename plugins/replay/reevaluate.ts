/** Evaluates one recorded decision again from the stored inputs, and compares it field by field. */
import {
  type ActionRequest,
  commitDigest,
  commitEffective,
  commitPast,
  commitSalted,
  type CoreHost,
  decide,
  type Decision,
  type DecisionEntry,
  decodeEntry,
  decodeEdit,
  decodePasts,
  decodeSalted,
  effectiveHash,
  effectiveRequest,
  encodeEntry,
  encodeRequest,
  type Facts,
  findDeniedBy,
  findPast,
  parseRfc3339,
  type RecordedFacts,
  type RedecisionEntry,
  restoreFacts,
  toHex,
} from "../../src/core.ts";
import { toRfc3339 } from "../../src/plugin.ts";
import { type ActionRow, type EntryRow, StorageError } from "../../src/storage/index.ts";
import { compareFields, type FieldComparison } from "./compare.ts";

type Decided = (DecisionEntry | RedecisionEntry) & { seq: number };

/** Result of evaluating a recorded decision again. */
export interface Reevaluation {
  row: EntryRow;
  entry: Decided;
  facts: Facts;
  clock: number;
  decision: Decision;
  policySet: string | null;
  fields: FieldComparison[];
}

export async function reevaluateEntry(
  host: CoreHost,
  action: ActionRow,
  proposed: ActionRequest,
  row: EntryRow,
): Promise<Reevaluation> {
  const entry = decodeEntry<Decided>(row.bytes);
  const request = isOfEdited(entry, action) ? (effectiveRequest(action) ?? proposed) : proposed;
  const clock = parseRfc3339(entry.at);
  if (clock === null) throw new StorageError("corrupt", `the entry ${row.seq} has no clock`);
  const set = await host.policies.byDigest(entry.policy_set);
  if (set === null)
    throw new StorageError(
      "corrupt",
      `the policy set ${entry.policy_set ?? ""} of entry ${row.seq} is not in the store`,
    );
  const facts = restoreFacts(entry.facts, action.past);
  const decision = decide(set.compiled, request, facts, clock);
  const rebuilt = rebuild(entry, action, request, decision);
  const fields: FieldComparison[] = [
    ...compareFields(
      entry.decision as unknown as Record<string, unknown>,
      decision as unknown as Record<string, unknown>,
    ),
    field(
      "request_hash",
      isOfEdited(entry, action) ? effectiveHash(action) : action.request_hash,
      encodeRequest(request).hash,
    ),
    field("commitment", entry.commitment, rebuilt.commitment),
    field("entry_hash", toHex(row.leaf_hash), toHex(encodeEntry(rebuilt, row.seq).leafHash)),
  ];
  return { row, entry, facts, clock, decision, policySet: set.digest, fields };
}

export function renderReevaluation({ row, entry, facts, decision, policySet, fields }: Reevaluation, seesAll: boolean) {
  return {
    hash: toHex(row.leaf_hash),
    at: entry.at,
    equal: fields.every(({ equal }) => equal),
    fields,
    limits: seesAll ? (facts.limits ?? []) : null,
    histories: seesAll ? (facts.history ?? []) : null,
    sources: seesAll ? (facts.sources ?? []) : null,
    attributes: seesAll ? (facts.attributes ?? null) : null,
    recorded: { policy_set: entry.policy_set, decision: entry.decision },
    replayed: { policy_set: policySet, decision },
  };
}

/**
 * Whether the entry commits to the request as an approver changed it. Entries before the change commit to the original.
 */
function isOfEdited({ commitment }: Decided, action: ActionRow): boolean {
  return action.effective !== null && commitment === commitEffective(action);
}

function saltOf(entry: Decided, action: ActionRow): string {
  return isOfEdited(entry, action) ? (decodeEdit(action.effective)?.salt ?? action.salt) : action.salt;
}

/** Rebuilds the entry from the stored inputs. Equal bytes prove that the entry is complete and unchanged. */
function rebuild(
  entry: Decided,
  action: ActionRow,
  request: ActionRequest,
  decision: Decision,
): DecisionEntry | RedecisionEntry {
  const { seq: _, ...recorded } = entry;
  const common = {
    action_id: action.id,
    agent_id: request.agent_id,
    commitment: commitDigest(saltOf(entry, action), encodeRequest(request).hash),
    facts: rebuiltFacts(recorded.facts, action.past),
    decision,
  };
  if (recorded.type === "redecision")
    return { ...recorded, ...common, status: decision.effect === "deny" ? "denied" : recorded.status };
  const status = decision.effect === "allow" ? "allowed" : decision.effect === "deny" ? "denied" : "pending_approval";
  const clock = parseRfc3339(entry.at) ?? 0;
  return {
    ...recorded,
    ...common,
    meta: metaOf(action),
    tool: request.tool,
    operation: request.operation,
    status,
    denied_by: findDeniedBy({ status, decision: decision.effect, reason_code: decision.reason_code }),
    expires_at: decision.approval === null ? null : toRfc3339(clock + decision.approval.expires_in_ms),
  };
}

/** Returns the commitment to the action's `meta`, or null if there is none. */
function metaOf({ meta }: ActionRow): string | null {
  const kept = decodeSalted(meta);
  return kept === null ? null : commitSalted(kept);
}

function rebuiltFacts(recorded: RecordedFacts, past: string | null): RecordedFacts {
  const kept = recorded.past === undefined ? null : (findPast(recorded.past, past) ?? decodePasts(past)[0] ?? null);
  return kept === null ? recorded : { ...recorded, past: commitPast(kept) };
}

/** Whether the entry is a decision or a redecision. */
export function isReplayable({ type }: EntryRow): boolean {
  return type === "decision" || type === "redecision";
}

function field(name: string, recorded: unknown, replayed: unknown): FieldComparison {
  return { field: name, recorded, replayed, equal: recorded === replayed };
}
