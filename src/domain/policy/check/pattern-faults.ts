/** Finds patterns that match no valid name. A rule with such a pattern seems to deny actions but never does. */
import { findGlobFault } from "../compile/glob.ts";
import type { PolicyDocument } from "../policy-types.ts";

interface PatternFault {
  /** Name of the rule or limit; null for `applies_to`. */
  rule: string | null;
  /** RFC 6901 pointer, relative to the policy. */
  pointer: string;
  message: string;
}

type Patterns = Partial<Pick<PolicyDocument, "applies_to" | "rules" | "limits" | "results">>;

export function findPatternFaults({ applies_to, rules = [], limits = [], results = [] }: Patterns): PatternFault[] {
  const faults: PatternFault[] = [];
  const check = (rule: string | null, matcher: string | string[] | undefined, pointer: string): void => {
    const patterns = matcher === undefined ? [] : [matcher].flat();
    for (const [i, pattern] of patterns.entries()) {
      const message = findGlobFault(pattern);
      if (message !== null)
        faults.push({ rule, pointer: typeof matcher === "string" ? pointer : `${pointer}/${i}`, message });
    }
  };
  check(null, applies_to?.tools, "/applies_to/tools");
  check(null, applies_to?.agents, "/applies_to/agents");
  for (const [kind, items] of Object.entries({ rules, limits, results }))
    for (const [i, item] of items.entries())
      for (const matcher of ["tool", "operation", "agent"] as const)
        check(item.name, item[matcher], `/${kind}/${i}/${matcher}`);
  return faults;
}
