/** Builds histories from given past actions instead of a store, for policy tests, explanations and dry runs. */
import type { ActionRequest } from "../../actions.ts";
import { encodeRequest } from "../../request.ts";
import { canonicalText } from "../../canonical.ts";
import type { JsonObject } from "../../json.ts";
import { parseDuration } from "../../time.ts";
import type { CompiledPolicySet } from "../compile/compile.ts";
import { Evaluation } from "../decide/evaluation.ts";
import {
  findHistoryMemberships,
  findHistoryReads,
  type HistoryRead,
  type PastActionRow,
  toHistoryFact,
} from "../decide/history-facts.ts";
import type { SampleAction } from "../parse/parse.ts";
import type { Facts } from "../policy-types.ts";

type GivenAction = NonNullable<SampleAction["history"]>[number];

/** Statuses of actions that were never allowed. */
const NEVER_ALLOWED = ["denied", "pending_approval", "expired", "cancelled"];

/** Returns the facts of a session with this name; no facts without a name. */
export function givenSession(name: string | undefined): Pick<Facts, "session"> {
  return name === undefined ? {} : { session: { id: name, issued_by: "test" } };
}

/** Returns the first action whose `ago` is not a duration, as a sentence; null if there is none. */
export function findGivenHistoryFault(given: readonly GivenAction[]): string | null {
  const odd = given.find(({ ago }) => parseDuration(ago) === null);
  return odd === undefined ? null : `history: "${odd.ago}" is not a duration such as 30m, 1h or 7d`;
}

/**
 * Returns the facts with the histories that the policies read, built from the given actions. Does not change histories
 * that the facts already contain.
 */
export function withGivenHistory(
  compiled: CompiledPolicySet,
  request: ActionRequest,
  facts: Facts,
  now: number,
  given: readonly GivenAction[] = [],
): Facts {
  const evaluation = new Evaluation(compiled, request, facts, now);
  const missing = findHistoryReads(evaluation).filter(
    ({ policy, history }) =>
      !facts.history?.some((fact) => fact.policy === policy.name && fact.basis === history.basis),
  );
  if (missing.length === 0) return facts;
  const rows = given
    .map((action, i) => givenRow(compiled, request, facts, now, action, i))
    .sort((a, b) => b.row.at - a.row.at);
  const rowsInHistory = (read: HistoryRead): PastActionRow[] =>
    rows
      .filter(
        ({ row, places }) =>
          read.span !== null &&
          row.at >= read.span.since &&
          row.at < now &&
          places.some(({ policy, subject }) => policy === read.span?.policy && subject === read.span.subject),
      )
      .map(({ row }) => row);
  const added = missing.map((read) => toHistoryFact(read, rowsInHistory(read), evaluation, ""));
  return { ...facts, history: [...(facts.history ?? []), ...added] };
}

/** Returns the text that an action's row contains for a reported result. */
export const toStoredResult = (success: boolean, meta: JsonObject): string =>
  canonicalText({ error: null, meta, success });

/** Returns a given action as the row that the service would read, and the histories that it belongs to. */
function givenRow(
  compiled: CompiledPolicySet,
  decided: ActionRequest,
  facts: Facts,
  now: number,
  given: GivenAction,
  i: number,
) {
  const { ago, tool, operation, status = "succeeded", agent_id = decided.agent_id, key_id, session } = given;
  const params = (given.params ?? {}) as JsonObject;
  const { result = {} } = given;
  const request: ActionRequest = { agent_id, tool, operation, params, context: (given.context ?? {}) as JsonObject };
  const at = now - (parseDuration(ago) ?? 0);
  const factsSoFar: Facts = {
    principal: { ...facts.principal, ...(key_id === undefined ? {} : { key_id }) },
    ...(session === undefined ? facts.session && { session: facts.session } : givenSession(session)),
  };
  const effect = status === "denied" ? "deny" : NEVER_ALLOWED.includes(status) ? "require_approval" : "allow";
  const row: PastActionRow = {
    id: `given-${i}`,
    agent_id,
    tool,
    operation,
    request: encodeRequest(request).text,
    effective: null,
    result: toStoredResult(status === "succeeded", result as JsonObject),
    status,
    decision: effect,
    reason_code: "POLICY_RULE",
    at,
    expires_at: null,
    approved_until: null,
    started_at: null,
    erased_at: null,
  };
  return { row, places: findHistoryMemberships(new Evaluation(compiled, request, factsSoFar, at), effect) };
}
