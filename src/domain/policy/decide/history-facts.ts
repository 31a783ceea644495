/**
 * Determines the past actions that a decision reads as histories, and the histories that an action itself belongs to.
 * The past actions are facts of the decision, read in its transaction and recorded with it. This module itself does not
 * read the store.
 */
import { effectiveRequest } from "../../edited-request.ts";
import { canonicalBytes, canonicalText } from "../../canonical.ts";
import { sha256Hex } from "../../hash.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../json.ts";
import { type ActionRequest, actionStatusAt, type ActionStatus } from "../../actions.ts";
import { toRfc3339 } from "../../time.ts";
import type { CompiledHistory, CompiledPolicy, CompiledPolicySet, CompiledRule } from "../compile/compile.ts";
import { matchNames } from "../compile/name-patterns.ts";
import { MAX_VALIDITY_MS, MAX_EXPIRY_MS } from "../parse/bounds.ts";
import type { Effect, Facts, HistoryFact, PastAction, ReasonCode } from "../policy-types.ts";
import { Evaluation, type HistoryOwner } from "./evaluation.ts";
import { matchNamesOf, type NameMatches } from "./name-matches.ts";
import { longestWindow, startOfWindow } from "./window.ts";

/** Maximum size in bytes of the past actions of one history, as canonical JSON. */
const MAX_HISTORY_BYTES = 65_536;

/** Selects the actions of one history, newest first. */
export interface HistorySpan {
  policy: string;
  /** Digest of the history's `per`. */
  basis: string;
  /** Digest of the value of `per`. */
  subject: string;
  /** Inclusive start. Milliseconds. */
  since: number;
  /** Maximum number of actions. */
  limit: number;
}

/** A history that the conditions for an action read. */
export interface HistoryRead {
  policy: CompiledPolicy;
  history: CompiledHistory;
  /** Selects the actions to read; null if the owner of the history cannot be determined. */
  span: HistorySpan | null;
}

/** A history that an action belongs to. */
export interface HistoryMembership extends Pick<HistorySpan, "policy" | "basis" | "subject"> {
  /**
   * Expiry of the membership, after which no window contains the action. It is the action's time plus a constant, so
   * that one update can change both. Milliseconds.
   */
  until: number;
}

/** The columns of an action's row that histories use. */
export interface PastActionRow {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  /** The submitted request; null if it is too long to read, and empty if it was erased. */
  request: string | null;
  /**
   * The request after an approver or obligations changed it; null if it was not changed, and empty if it is too long to
   * read.
   */
  effective: string | null;
  /** The reported result; null before the report, if the result was erased, or if it is too long to read. */
  result: string | null;
  status: ActionStatus;
  decision: Effect;
  reason_code: ReasonCode;
  /** Time of the action in the history. Milliseconds. */
  at: number;
  expires_at: number | null;
  approved_until: number | null;
  started_at: number | null;
  erased_at: number | null;
}

/** Returns the histories that the conditions for an action read, in the order of the set. */
export function findHistoryReads(evaluation: Evaluation): HistoryRead[] {
  if (evaluation.compiled.withHistory.length === 0) return [];
  return evaluation.applicablePolicies().flatMap((policy) => {
    const { history } = policy;
    if (history === null || !readsHistory(policy, evaluation)) return [];
    const owner = findOwner(policy, history, evaluation);
    const since = startOfWindow(history.window, evaluation.now);
    // Read two more actions than the maximum: one to detect that there are too many, and one because the action itself
    // can be among them.
    const limit = history.max + 2;
    const span = "fault" in owner ? null : { policy: policy.name, basis: history.ownerBasis, ...owner, since, limit };
    return [{ policy, history, span }];
  });
}

function readsHistory(policy: CompiledPolicy, evaluation: Evaluation): boolean {
  return evaluation.rules(policy).some(({ condition }) => condition?.readsHistory === true);
}

/**
 * Returns the fact of a history.
 * @param rows the actions of its span, newest first
 * @param actionId the id of the action that is decided, which is not a past action
 */
export function toHistoryFact(
  { policy, history, span }: HistoryRead,
  rows: readonly PastActionRow[],
  evaluation: Evaluation,
  actionId: string,
): HistoryFact {
  const { basis, max } = history;
  const fact = (actions: PastAction[], fault: HistoryFact["fault"]): HistoryFact => ({
    policy: policy.name,
    basis,
    actions,
    fault,
  });
  if (span === null) {
    const owner = findOwner(policy, history, evaluation);
    return fact([], "fault" in owner ? owner.fault : "no_value");
  }
  const past = rows.filter(({ id }) => id !== actionId);
  if (past.length > max) return fact([], "too_many");
  const actions: PastAction[] = [];
  let bytes = 0;
  for (const row of past) {
    const action = toPastAction(row, history, evaluation.now);
    bytes += action === null ? Infinity : canonicalText(action as unknown as JsonValue).length;
    if (action === null || bytes > MAX_HISTORY_BYTES) return fact([], "too_large");
    actions.push(action);
  }
  return fact(actions, null);
}

/** Returns the past action; null if its request is too long to read. */
function toPastAction(row: PastActionRow, { members, keep }: CompiledHistory, now: number): PastAction | null {
  const { request, effective, erased_at } = row;
  if (request === null || effective === "") return null;
  const read = erased_at === null ? effectiveRequest({ request, effective }) : null;
  return {
    agent: row.agent_id,
    at: toRfc3339(row.at),
    context: read === null ? null : selectMembers(read.context, members.context),
    id: row.id,
    may_have_run: mayHaveRun(row),
    operation: row.operation,
    params: read === null ? null : selectMembers(read.params, members.params),
    ...(keep.length === 0 ? {} : { result: readResult(row, keep) }),
    status: actionStatusAt(row, now),
    tool: row.tool,
  };
}

/** Statuses of actions whose result was reported. */
const REPORTED_STATUSES: readonly ActionStatus[] = ["succeeded", "failed"];

/** Returns the members of the result that `keep` lists; {} before the report; null if the result cannot be read. */
function readResult({ result, status, erased_at }: PastActionRow, keep: CompiledHistory["keep"]): JsonObject | null {
  if (result === null) return REPORTED_STATUSES.includes(status) || erased_at !== null ? null : {};
  return keepMembers((JSON.parse(result) as { meta: JsonObject }).meta, keep);
}

/** Returns a copy of an object that has only the members with these paths; {} for other values. */
export function keepMembers(value: JsonValue, paths: CompiledHistory["keep"]): JsonObject {
  if (!isJsonObject(value)) return {};
  const names = [...new Set(paths.map(([name]) => name ?? ""))].filter((name) => Object.hasOwn(value, name));
  return Object.fromEntries(
    names.flatMap((name) => {
      const member = value[name] as JsonValue;
      const below = paths.filter(([first]) => first === name).map(([, ...rest]) => rest);
      if (below.some((path) => path.length === 0)) return [[name, member]];
      const kept = keepMembers(member, below);
      return Object.keys(kept).length === 0 ? [] : [[name, kept]];
    }),
  );
}

function selectMembers(object: JsonObject, names: readonly string[] | null): JsonObject {
  if (names === null) return object;
  return Object.fromEntries(
    names.filter((name) => Object.hasOwn(object, name)).map((name) => [name, object[name] as JsonValue]),
  );
}

/**
 * Returns true if the action might have run. It was allowed or approved, and permits can be used outside the service.
 * Also returns true for actions that the policies or a machine reviewer denied later, because the row does not record
 * an earlier approval.
 */
function mayHaveRun({ decision, reason_code, approved_until, started_at }: PastActionRow): boolean {
  return (
    decision === "allow" ||
    approved_until !== null ||
    started_at !== null ||
    reason_code === "MORE_APPROVALS_NEEDED" ||
    reason_code === "NO_LONGER_ALLOWED" ||
    reason_code === "REVIEWER_DENIED"
  );
}

/** Returns the histories that an action with this decision belongs to. */
export function findHistoryMemberships(evaluation: Evaluation, effect: Effect): HistoryMembership[] {
  return evaluation.compiled.withHistory.flatMap((policy) => {
    const history = policy.history as CompiledHistory;
    if ((effect === "deny" && !history.includeDenied) || !belongsTo(policy, history, evaluation)) return [];
    const owner = findOwner(policy, history, evaluation);
    if ("fault" in owner) return [];
    // An action can start long after its submission, and its time in the histories is then its start. Even an allowed
    // action can have to wait, because later policies or an edit can require approval.
    const until = evaluation.now + longestWindow(history.window) + MAX_EXPIRY_MS + MAX_VALIDITY_MS;
    return [{ policy: policy.name, basis: history.ownerBasis, subject: owner.subject, until }];
  });
}

function belongsTo(
  policy: CompiledPolicy,
  { tools, operations }: CompiledHistory,
  matches: Pick<NameMatches, "names">,
): boolean {
  const names = matches.names(policy);
  return matchNames(tools, names.tool) && matchNames(operations, names.operation);
}

/** Returns true if an action with these names and this decision belongs to a history of the policy, whoever owns it. */
export function mayBelongTo(
  compiled: CompiledPolicySet,
  { policy, basis }: Pick<HistorySpan, "policy" | "basis">,
  action: Pick<ActionRequest, "agent_id" | "tool" | "operation">,
  effect: Effect,
): boolean {
  return compiled.withHistory.some((declaring) => {
    const history = declaring.history as CompiledHistory;
    if (declaring.name !== policy || history.ownerBasis !== basis) return false;
    if (effect === "deny" && !history.includeDenied) return false;
    return belongsTo(declaring, history, matchNamesOf(compiled, action));
  });
}

/** Returns the histories that contain actions with these names. */
export function listHistoriesOf(
  compiled: CompiledPolicySet,
  action: Pick<ActionRequest, "agent_id" | "tool" | "operation">,
): CompiledHistory[] {
  if (compiled.withHistory.length === 0) return [];
  const matches = matchNamesOf(compiled, action);
  return compiled.withHistory.flatMap((policy) => {
    const history = policy.history as CompiledHistory;
    return belongsTo(policy, history, matches) ? history : [];
  });
}

/**
 * A history to which the action belongs although its owner is unknown. The action is denied, because no history would
 * contain it.
 */
interface UnknownHistory {
  policy: CompiledPolicy;
  rule: CompiledRule;
  reason: string;
}

/** Returns the histories to which the action belongs although their owner is unknown. */
export function findUnknownHistories(evaluation: Evaluation): UnknownHistory[] {
  return evaluation.compiled.withHistory.flatMap((policy) => {
    const history = policy.history as CompiledHistory;
    if (!belongsTo(policy, history, evaluation)) return [];
    const owner = findOwner(policy, history, evaluation);
    if (!("fault" in owner)) return [];
    const reason =
      owner.fault === "no_session"
        ? "the request has no session token"
        : "its per could not be evaluated to a string, a number or a boolean";
    return [{ policy, rule: history.rule, reason: `the history of policy "${policy.name}": ${reason}` }];
  });
}

/** Returns the owner of the action in a history. Determines it at most once per evaluation. */
function findOwner(policy: CompiledPolicy, history: CompiledHistory, evaluation: Evaluation): HistoryOwner {
  const owner = evaluation.historyOwners.get(policy) ?? determineOwner(policy, history, evaluation);
  evaluation.historyOwners.set(policy, owner);
  return owner;
}

function determineOwner(policy: CompiledPolicy, { per }: CompiledHistory, evaluation: Evaluation): HistoryOwner {
  if (per === null) {
    const { sessionId } = evaluation;
    return sessionId === null ? { fault: "no_session" } : { subject: digest(sessionId) };
  }
  const result = per.evaluate(evaluation.historyActivation(policy));
  if ("error" in result) return { fault: "no_value" };
  const value = typeof result.value === "bigint" ? Number(result.value) : result.value;
  const isKey = typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
  return isKey ? { subject: digest(value as string | boolean | number) } : { fault: "no_value" };
}

const digest = (value: string | boolean | number): string => sha256Hex(canonicalBytes(value));

/** Returns the enforced policies whose conditions for the action read a history that the facts do not contain. */
export function findUnrecordedHistories(evaluation: Evaluation, facts: Pick<Facts, "history">): string[] {
  return findHistoryReads(evaluation)
    .filter(
      ({ policy, history }) =>
        !policy.shadow &&
        facts.history?.some((fact) => fact.policy === policy.name && fact.basis === history.basis) !== true,
    )
    .map(({ policy }) => policy.name);
}
