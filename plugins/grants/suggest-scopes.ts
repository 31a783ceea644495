/**
 * Suggests scopes for a grant from one request. A scope fixes every member of the request, the context included, and
 * excludes members that the request did not have. At most one member may vary: one in which otherwise equal approved
 * requests differed. It may have only the values of these requests, which the suggestion lists. If two members varied,
 * a scope would also cover combinations that no one approved.
 */
import {
  type ActionRequest,
  celLiteral,
  celMember,
  type Evaluation,
  hasHiddenCharacters,
  type JsonValue,
  matchGrant,
  REQUEST_PARTS,
  type RequestPart,
} from "../../src/core.ts";
import type { VaryingMember } from "./scope-words.ts";

/** An earlier request with its decision. */
export interface EarlierRequest {
  evaluation: Evaluation;
  /** Whether people approved the request as it was submitted. */
  isApproved: boolean;
  /** Whether a person rejected it. */
  isRejected: boolean;
}

export interface ScopeSuggestion<Request extends EarlierRequest> {
  /** CEL. */
  scope: string;
  /** The members that the scope does not fix. All other members must be as in the request. */
  varying: readonly VaryingMember[];
  /** The earlier requests that the scope would have covered, in the order of the input. */
  covered: readonly Request[];
}

/** Maximum length of the scope of a grant. */
export const MAX_SCOPE = 2_000;
/** Maximum number of approved requests whose values a scope allows, so that a person can read all of them. */
const MAX_SEEN = 5;
/** Maximum number of characters of a string that may vary, so that it can be displayed whole. */
const MAX_TEXT = 100;

type Scalar = string | number | boolean;

/** A condition on one member of the request. */
interface MemberCondition {
  text: string;
  /** Null if the condition fixes the member. */
  varying: VaryingMember | null;
}

/**
 * Returns up to two scopes: one that covers only requests with the same parameters and context, and one that also
 * allows the values of earlier requests that people approved. Omits a scope that would have covered a rejected request,
 * that the policies do not accept, or that does not cover the request itself. Returns an empty list if the request
 * cannot be expressed as a scope.
 * @param request the evaluation of the request
 * @param earlier earlier requests of the same agent, tool and operation, newest first
 * @param isValid whether the policies accept a scope
 */
export function suggestScopes<Request extends EarlierRequest>(
  request: Evaluation,
  earlier: readonly Request[],
  isValid: (scope: string) => boolean,
): ScopeSuggestion<Request>[] {
  const approved = earlier.filter(({ isApproved }) => isApproved).map(({ evaluation }) => evaluation.request);
  const seen = [request.request, ...findVariation(request.request, approved).slice(0, MAX_SEEN)];
  const suggestions: ScopeSuggestion<Request>[] = [];
  for (const requests of [[request.request], seen]) {
    const { scope, varying } = fitScope(requests);
    if (scope === suggestions[0]?.scope || scope.length > MAX_SCOPE || !isValid(scope)) continue;
    const covers = (evaluation: Evaluation): boolean =>
      matchGrant({ id: scope, scope, sum: null }, evaluation) !== null;
    const covered = earlier.filter(({ evaluation }) => covers(evaluation));
    if (covers(request) && !covered.some(({ isRejected }) => isRejected)) suggestions.push({ scope, varying, covered });
  }
  return suggestions;
}

/**
 * Returns the approved requests that differ from the request in exactly one member, the same for all of them. If there
 * are several such members, chooses the one in which most requests differ.
 */
function findVariation(request: ActionRequest, approved: readonly ActionRequest[]): readonly ActionRequest[] {
  const byMember = new Map<string, ActionRequest[]>();
  for (const other of approved) {
    const [change, ...more] = listChanges(request, other);
    if (change === undefined || more.length > 0 || !canVary(change.values)) continue;
    byMember.set(change.member, [...(byMember.get(change.member) ?? []), other]);
  }
  return [...byMember.values()].reduce((most, each) => (each.length > most.length ? each : most), []);
}

/** A member in which two requests differ; the value is undefined in a request without the member. */
interface MemberChange {
  member: string;
  values: [JsonValue | undefined, JsonValue | undefined];
}

function listChanges(a: ActionRequest, b: ActionRequest): MemberChange[] {
  return REQUEST_PARTS.flatMap((part) =>
    [...new Set([...Object.keys(a[part]), ...Object.keys(b[part])])].flatMap((name) => {
      const [value, other] = [a, b].map((each) => (Object.hasOwn(each[part], name) ? each[part][name] : undefined));
      const isEqual = JSON.stringify(value) === JSON.stringify(other);
      return isEqual ? [] : [{ member: celMember(part, name), values: [value, other] }];
    }),
  );
}

/** Returns the narrowest scope for requests with the same members. The first request is the request to approve. */
function fitScope(requests: readonly ActionRequest[]): { scope: string; varying: VaryingMember[] } {
  const conditions = REQUEST_PARTS.flatMap((part) => {
    const names = Object.keys(requests[0]?.[part] ?? {});
    return [
      { text: `size(${part}) == ${names.length}`, varying: null },
      ...names.map((name) =>
        fitMember(
          part,
          name,
          requests.map((request) => request[part][name] as JsonValue),
        ),
      ),
    ];
  });
  return {
    scope: conditions.map(({ text }) => text).join(" && "),
    varying: conditions.flatMap(({ varying }) => varying ?? []),
  };
}

/**
 * Returns a scope that covers only requests with the same members as this one, and with equal values except in `free`.
 * @param free the members that may have any value but null, as CEL, such as `params.body`
 */
export function fitRequest(request: ActionRequest, free: readonly string[]): string {
  return REQUEST_PARTS.flatMap((part) => {
    const members = Object.entries(request[part]);
    return [
      `size(${part}) == ${members.length}`,
      ...members.map(([name, value]) => {
        const member = celMember(part, name);
        return free.includes(member) ? `${member} != null` : `${member} == ${celLiteral(value)}`;
      }),
    ];
  }).join(" && ");
}

function fitMember(part: RequestPart, name: string, values: readonly JsonValue[]): MemberCondition {
  const member = celMember(part, name);
  const [value] = values as [JsonValue];
  const distinct = [...new Set(values)];
  if (distinct.length === 1 || !canVary(distinct)) return { text: `${member} == ${celLiteral(value)}`, varying: null };
  if (typeof value === "number") {
    const [low, high] = [Math.min(...(distinct as number[])), Math.max(...(distinct as number[]))].map(celLiteral);
    return {
      text: `${member} >= ${low} && ${member} <= ${high}`,
      varying: { member, values: `from ${low} to ${high}` },
    };
  }
  const literals = distinct.map(celLiteral).sort();
  return {
    text: `${member} in [${literals.join(", ")}]`,
    varying: { member, values: `${literals.slice(0, -1).join(", ")} or ${literals.at(-1)}` },
  };
}

/** Returns true for values of one type that a person sees whole. */
function canVary(values: readonly (JsonValue | undefined)[]): boolean {
  return values.every((value) => value !== undefined && isShowable(value) && typeof value === typeof values[0]);
}

/** Returns true for a value that a person sees whole, in one line. */
function isShowable(value: JsonValue): value is Scalar {
  if (typeof value === "string") return value.length <= MAX_TEXT && !hasHiddenCharacters(value);
  return typeof value === "number" || typeof value === "boolean";
}
