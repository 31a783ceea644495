/** Obligations of rules: `set` and `clamp` change parameters of a request before it may run. */
import type { ActionRequest } from "./actions.ts";
import { findParameter } from "./edited-request.ts";
import type { Decision, Obligation } from "./policy/policy-types.ts";

/** Why obligations cannot be met: the parameter, and a phrase such as `the request does not have it`. */
interface ObligationFault {
  path: string;
  detail: string;
}

/**
 * Combines the obligations of several rules, sorted by path: the tightest bounds, and one value for each parameter.
 * Returns a fault if no value can satisfy them.
 * @example combineObligations([[{ path: "params.amount", max: 500 }], [{ path: "params.amount", max: 300 }]]) // max: 300
 */
export function combineObligations(lists: readonly (readonly Obligation[])[]): Obligation[] | ObligationFault {
  const combined = new Map<string, Obligation>();
  for (const obligation of lists.flat()) {
    const { path } = obligation;
    const { max, min, set } = combined.get(path) ?? {};
    if (set !== undefined && obligation.set !== undefined && set !== obligation.set)
      return { path, detail: `rules set it to ${JSON.stringify(set)} and to ${JSON.stringify(obligation.set)}` };
    const most = tighter(max, obligation.max, Math.min);
    const least = tighter(min, obligation.min, Math.max);
    const value = set ?? obligation.set;
    combined.set(path, {
      ...(most === undefined ? {} : { max: most }),
      ...(least === undefined ? {} : { min: least }),
      path,
      ...(value === undefined ? {} : { set: value }),
    });
  }
  for (const obligation of combined.values()) {
    const detail = findObligationConflict(obligation);
    if (detail !== null) return { path: obligation.path, detail };
  }
  return [...combined.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function tighter(a: number | undefined, b: number | undefined, choose: typeof Math.min): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : choose(a, b);
}

/** Returns why no value can satisfy the obligation; null if one can. */
export function findObligationConflict({ max, min, set }: Omit<Obligation, "path">): string | null {
  if (max !== undefined && min !== undefined && min > max) return `it must be at least ${min} and at most ${max}`;
  if (set === undefined || (max === undefined && min === undefined)) return null;
  const isWithin = typeof set === "number" && set <= (max ?? set) && set >= (min ?? set);
  return isWithin ? null : `it is set to ${JSON.stringify(set)}, which is outside the bounds of clamp`;
}

/**
 * Returns the request that satisfies the obligations, and the paths of the parameters that differ. A parameter that is
 * missing or has a different type is a fault.
 */
export function applyObligations(
  request: ActionRequest,
  obligations: readonly Obligation[],
): { request: ActionRequest; changed: string[] } | ObligationFault {
  const params = structuredClone(request.params);
  const changed: string[] = [];
  for (const { path, max, min, set } of obligations) {
    const found = findParameter(params, path);
    if (found === null) return { path, detail: "the request does not have it" };
    const { parent, name, value } = found;
    const type = set === undefined ? "number" : typeof set;
    if (typeof value !== type) return { path, detail: `it must be a ${type}` };
    const next = set ?? Math.max(min ?? -Infinity, Math.min(max ?? Infinity, value as number));
    if (next === value) continue;
    parent[name] = next;
    changed.push(path);
  }
  return { request: { ...request, params }, changed };
}

/**
 * Applies the decision's obligations to the request. Returns null if they do not change it.
 * @example applyDecisionObligations(request, decision) ?? request // the request that may run
 */
export function applyDecisionObligations(
  request: ActionRequest,
  { obligations = [] }: Pick<Decision, "obligations">,
): ActionRequest | null {
  const applied = applyObligations(request, obligations);
  return "detail" in applied || applied.changed.length === 0 ? null : applied.request;
}
