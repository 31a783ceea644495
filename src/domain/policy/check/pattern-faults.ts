/** Patterns that no name can match: a rule that looks as if it denied something must not be taken. */
import { findGlobFault } from "../compile/glob.ts";
import type { PolicyDocument } from "../types.ts";

export interface PatternFault {
  /** Name of the rule or limit; null for `applies_to`. */
  rule: string | null;
  /** RFC 6901, from the policy on. */
  pointer: string;
  message: string;
}

type Patterns = Partial<Pick<PolicyDocument, "applies_to" | "rules" | "limits">>;

export function findPatternFaults({ applies_to, rules = [], limits = [] }: Patterns): PatternFault[] {
  const faults: PatternFault[] = [];
  const check = (rule: string | null, given: string | string[] | undefined, pointer: string): void => {
    const patterns = given === undefined ? [] : [given].flat();
    for (const [i, pattern] of patterns.entries()) {
      const message = findGlobFault(pattern);
      if (message !== null)
        faults.push({ rule, pointer: typeof given === "string" ? pointer : `${pointer}/${i}`, message });
    }
  };
  check(null, applies_to?.tools, "/applies_to/tools");
  check(null, applies_to?.agents, "/applies_to/agents");
  for (const [kind, all] of Object.entries({ rules, limits }))
    for (const [i, one] of all.entries())
      for (const matcher of ["tool", "operation", "agent"] as const)
        check(one.name, one[matcher], `/${kind}/${i}/${matcher}`);
  return faults;
}
