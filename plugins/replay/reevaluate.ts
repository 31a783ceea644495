/** Evaluates one recorded decision again from the stored inputs, and compares it field by field. */
import {
  type ActionRequest,
  commitDigest,
  effectiveCommitment,
  commitPins,
  commitSaltedFacts,
  readPins,
  commitSalted,
  type CompiledPolicySet,
  type CoreHost,
  decide,
  type Decision,
  type DecisionEntry,
  decodeEntry,
  decodeEdit,
  decodeSaltedFacts,
  decodeSalted,
  effectiveRequestHash,
  effectiveRequest,
  encodeEntry,
  encodeRequest,
  type Facts,
  applyDecisionObligations,
  findDeniedBy,
  findFactsByCommitment,
  omitRedactedUsage,
  parseRfc3339,
  type PastAction,
  redactParams,
  type RecordedFacts,
  type RedecisionEntry,
  restoreFacts,
  toHex,
} from "../../src/core.ts";
import { toRfc3339 } from "../../src/plugin.ts";
import { type ActionRow, type EntryRow, StorageError } from "../../src/storage/index.ts";
import { compareFields, type FieldComparison } from "./compare.ts";

type DecidedEntry = (DecisionEntry | RedecisionEntry) & { seq: number };

/** Result of evaluating a recorded decision again. */
export interface Reevaluation {
  row: EntryRow;
  entry: DecidedEntry;
  /** The request that the decision was about: the submitted request, or the changed request. */
  request: ActionRequest;
  facts: Facts;
  clock: number;
  decision: Decision;
  /** The policy set that the entry names. */
  set: CompiledPolicySet;
  fields: FieldComparison[];
}

export async function reevaluateEntry(
  host: CoreHost,
  action: ActionRow,
  proposed: ActionRequest,
  row: EntryRow,
): Promise<Reevaluation> {
  const entry = decodeEntry<DecidedEntry>(row.bytes);
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
    compareField(
      "request_hash",
      isOfEdited(entry, action) ? effectiveRequestHash(action) : action.request_hash,
      encodeRequest(request).hash,
    ),
    compareField("commitment", entry.commitment, rebuilt.commitment),
    compareField("entry_hash", toHex(row.leaf_hash), toHex(encodeEntry(rebuilt, row.seq).leafHash)),
  ];
  return { row, entry, request, facts, clock, decision, set: set.compiled, fields };
}

/** @param active determines the parameters that are redacted */
export function renderReevaluation(
  { row, entry, facts, decision, set, fields }: Reevaluation,
  seesAll: boolean,
  active: CompiledPolicySet,
) {
  const { limits, history } = omitRedactedUsage(active, set, facts);
  const histories = history.map(({ actions, ...fact }) => ({ ...fact, actions: actions.map(redactPast) }));
  function redactPast(past: PastAction): PastAction {
    const { agent: agent_id, tool, operation, params } = past;
    return { ...past, params: params && redactParams(active, { agent_id, tool, operation }, params) };
  }
  return {
    hash: toHex(row.leaf_hash),
    at: entry.at,
    equal: fields.every(({ equal }) => equal),
    fields,
    limits: seesAll ? limits : null,
    histories: seesAll ? histories : null,
    sources: seesAll ? (facts.sources ?? []) : null,
    attributes: seesAll ? (facts.attributes ?? null) : null,
    recorded: { policy_set: entry.policy_set, decision: entry.decision },
    replayed: { policy_set: set.digest, decision },
  };
}

/**
 * True if the entry is about the request after changes by an approver or the policies. Only such entries commit to the
 * changed request.
 */
function isOfEdited({ commitment }: DecidedEntry, action: ActionRow): boolean {
  return action.effective !== null && commitment === effectiveCommitment(action);
}

function saltOf(entry: DecidedEntry, action: ActionRow): string {
  return isOfEdited(entry, action) ? (decodeEdit(action.effective)?.salt ?? action.salt) : action.salt;
}

/** Rebuilds the entry from the stored inputs. Equal bytes prove that the entry is complete and unchanged. */
function rebuild(
  entry: DecidedEntry,
  action: ActionRow,
  request: ActionRequest,
  decision: Decision,
): DecisionEntry | RedecisionEntry {
  const { seq: _, pins: __, ...recorded } = entry;
  if (recorded.type === "decision") delete recorded.effective;
  const common = {
    action_id: action.id,
    agent_id: request.agent_id,
    commitment: commitDigest(saltOf(entry, action), encodeRequest(request).hash),
    facts: rebuiltFacts(recorded.facts, action.past),
    decision,
    ...rebuiltPins(decision, recorded.facts, action),
  };
  if (recorded.type === "redecision")
    return { ...recorded, ...common, status: decision.effect === "deny" ? "denied" : recorded.status };
  const status = decision.effect === "allow" ? "allowed" : decision.effect === "deny" ? "denied" : "pending_approval";
  const clock = parseRfc3339(entry.at) ?? 0;
  return {
    ...recorded,
    ...common,
    ...rebuiltEffective(action, request, decision),
    meta: metaOf(action),
    tool: request.tool,
    operation: request.operation,
    status,
    denied_by: findDeniedBy({ status, decision: decision.effect, reason_code: decision.reason_code }),
    expires_at: decision.approval === null ? null : toRfc3339(clock + decision.approval.expires_in_ms),
  };
}

/** Returns the commitment to the request as obligations change it; an empty object if they do not change it. */
function rebuiltEffective(
  { salt }: ActionRow,
  request: ActionRequest,
  decision: Decision,
): Pick<DecisionEntry, "effective"> {
  const obliged = applyDecisionObligations(request, decision);
  return obliged === null ? {} : { effective: commitDigest(salt, encodeRequest(obliged).hash) };
}

/** Returns the commitment to the pinned facts; an empty object without pins. */
function rebuiltPins(decision: Decision, facts: RecordedFacts, { past, salt }: ActionRow): { pins?: string } {
  const pins = commitPins(salt, readPins(decision.approval?.pins ?? [], restoreFacts(facts, past).sources));
  return pins === null ? {} : { pins };
}

/** Returns the commitment to the action's `meta`, or null if there is none. */
function metaOf({ meta }: ActionRow): string | null {
  const storedMeta = decodeSalted(meta);
  return storedMeta === null ? null : commitSalted(storedMeta);
}

function rebuiltFacts(recorded: RecordedFacts, past: string | null): RecordedFacts {
  const storedFacts =
    recorded.past === undefined
      ? null
      : (findFactsByCommitment(recorded.past, past) ?? decodeSaltedFacts(past)[0] ?? null);
  return storedFacts === null ? recorded : { ...recorded, past: commitSaltedFacts(storedFacts) };
}

/** Returns true if the entry is a decision or a redecision. */
export function isReplayable({ type }: EntryRow): boolean {
  return type === "decision" || type === "redecision";
}

function compareField(name: string, recorded: unknown, replayed: unknown): FieldComparison {
  return { field: name, recorded, replayed, equal: recorded === replayed };
}
