/**
 * Finds faults in a suggested policy. It must have one rule, with exact names, so that it is always clear whether a
 * stop applies to the rule.
 */
import { isGlob } from "../compile/glob.ts";
import type { PolicyDocument } from "../policy-types.ts";

interface SuggestedFault {
  /** RFC 6901 pointer, relative to the policy. */
  pointer: string;
  detail: string;
}

/** Returns the faults of a policy with `suggested`; an empty list for other policies. */
export function findSuggestedFaults({ suggested, rules, limits = [] }: PolicyDocument): SuggestedFault[] {
  if (suggested === undefined) return [];
  const [rule] = rules;
  if (rule === undefined || rules.length > 1 || limits.length > 0)
    return [{ pointer: "/rules", detail: "a suggested policy has exactly one rule and no limits" }];
  const faults: SuggestedFault[] = [];
  if (rule.effect !== "allow")
    faults.push({ pointer: "/rules/0/effect", detail: "the rule of a suggested policy has the effect allow" });
  if (rule.obligations !== undefined)
    faults.push({
      pointer: "/rules/0/obligations",
      detail: "the rule of a suggested policy has no obligations: it must not change requests while it is not in force",
    });
  for (const name of ["tool", "operation"] as const)
    if (typeof rule[name] !== "string" || isGlob(rule[name]))
      faults.push({
        pointer: `/rules/0${rule[name] === undefined ? "" : `/${name}`}`,
        detail: `the rule of a suggested policy names exactly one ${name}, without * and ?`,
      });
  const agents = [rule.agent ?? []].flat();
  if (agents.length === 0 || agents.some(isGlob))
    faults.push({
      pointer: `/rules/0${rule.agent === undefined ? "" : "/agent"}`,
      detail: "the rule of a suggested policy names its agents, without * and ?",
    });
  return faults;
}
