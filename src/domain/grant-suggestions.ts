/**
 * Suggests scopes for a grant from the parameters of one request. Values of the request appear only as quoted literals.
 * Each suggestion contains the earlier requests that it would have covered.
 */
import type { ActionRequest } from "./actions.ts";
import type { JsonObject } from "./json.ts";
import type { Evaluation } from "./policy/decide/evaluation.ts";
import { celLiteral, celParam } from "./policy/condition/cel-literal.ts";
import { matchGrant } from "./policy/decide/grant.ts";

/** An earlier request with its decision. */
export interface EarlierRequest {
  evaluation: Evaluation;
  /** Whether a person rejected it. */
  isRejected: boolean;
}

interface ScopeSuggestion<Request extends EarlierRequest> {
  /** CEL; null covers every request of the agent, tool and operation. */
  scope: string | null;
  /** The earlier requests that the scope would have covered, in the order of the input. */
  covered: readonly Request[];
}

const MAX_MEMBERS = 6;
const MAX_TEXT = 100;
const MAX_SCOPE = 500;
/**
 * Returns up to three scopes, the narrowest first: conditions on all parameters, the one condition that covers the most
 * earlier requests, and no restriction. Uses at most six parameters. Omits scopes that would have covered a request
 * that a person rejected, and scopes that do not cover more requests than a narrower scope.
 */
export function suggestScopes<Request extends EarlierRequest>(
  { params }: Pick<ActionRequest, "params">,
  earlier: readonly Request[],
): ScopeSuggestion<Request>[] {
  const conditions = conditionsOf(params);
  const all = conditions.join(" && ");
  const singles = findCovered(conditions, earlier).sort((a, b) => b.covered.length - a.covered.length);
  const whole = all.length > 0 && all.length <= MAX_SCOPE ? findCovered([all], earlier) : [];
  const suggestions: ScopeSuggestion<Request>[] = [];
  for (const candidate of [...whole, ...singles.slice(0, 1), ...findCovered([null], earlier)]) {
    const narrower = suggestions.at(-1);
    if (narrower === undefined || candidate.covered.length > narrower.covered.length) suggestions.push(candidate);
  }
  return suggestions;
}

/** Returns the scopes that do not cover a rejected request, each with the requests that it covers. */
function findCovered<Request extends EarlierRequest>(
  scopes: readonly (string | null)[],
  earlier: readonly Request[],
): ScopeSuggestion<Request>[] {
  const suggestions: ScopeSuggestion<Request>[] = [];
  for (const scope of scopes) {
    const covered = earlier.filter(
      ({ evaluation }) => matchGrant({ id: scope ?? "", scope, sum: null }, evaluation) !== null,
    );
    if (!covered.some(({ isRejected }) => isRejected)) suggestions.push({ scope, covered });
  }
  return suggestions;
}

/**
 * Returns a condition for each of the first parameters that are strings, numbers or booleans. The condition of a number
 * is an upper bound.
 */
function conditionsOf(params: JsonObject): string[] {
  const conditions: string[] = [];
  for (const [name, value] of Object.entries(params)) {
    const isText = typeof value === "string" && value.length <= MAX_TEXT;
    if (!isText && typeof value !== "number" && typeof value !== "boolean") continue;
    const condition = `${celParam(name)} ${typeof value === "number" ? "<=" : "=="} ${celLiteral(value)}`;
    if (condition.length <= MAX_SCOPE) conditions.push(condition);
    if (conditions.length === MAX_MEMBERS) break;
  }
  return conditions;
}
