/** From a body to policies that compile: nothing else is stored. */
import { Refusal } from "../../src/contract/errors.ts";
import type { RequestContext } from "../../src/contract/resource.ts";
import { fromJson, policiesFromYaml, type ReadPolicy } from "../../src/toolkit/candidates.ts";

export const YAML_TYPES = ["application/yaml", "application/x-yaml", "text/yaml"] as const;

/** One policy, as JSON or as YAML. Throws POLICY_INVALID. */
export function policyOf(context: RequestContext): ReadPolicy {
  if (typeof context.body !== "string") return fromJson(context.body, "");
  const found = policiesFromYaml(context.body);
  if (found.length > 1) throw new Refusal("POLICY_INVALID", `the body holds ${found.length} policies, and one is taken here; POST /v1/policies/import-yaml takes several`);
  return found[0] as ReadPolicy;
}
