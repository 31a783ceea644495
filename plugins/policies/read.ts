/** From a body to policies that compile: nothing else is stored. */
import { Refusal } from "../../src/contract/errors.ts";
import { fromJson, policiesFromYaml, type ReadPolicy } from "../../src/http/resource/candidates.ts";

export const YAML_TYPES = ["application/yaml", "application/x-yaml", "text/yaml"] as const;

/** One policy, as JSON or as YAML. Throws POLICY_INVALID. */
export function policyOf(body: unknown): ReadPolicy {
  if (typeof body !== "string") return fromJson(body, "");
  const policies = policiesFromYaml(body);
  if (policies.length > 1)
    throw new Refusal(
      "POLICY_INVALID",
      `the body holds ${policies.length} policies, and one is taken here; POST /v1/policies/import-yaml takes several`,
    );
  return policies[0] as ReadPolicy;
}
