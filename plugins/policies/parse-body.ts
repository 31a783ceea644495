/** From a body to policies that compile: nothing else is stored. */
import { type Host, Refusal } from "../../src/plugin.ts";
import type { ParsedPolicy } from "../../src/core.ts";

export const YAML_TYPES = ["application/yaml", "application/x-yaml", "text/yaml"] as const;

/** And what clients name a file that they know nothing of; the last is curl's for `--data-binary`. */
export const FILE_TYPES = [...YAML_TYPES, "text/plain", "application/x-www-form-urlencoded"] as const;

/** One policy, as JSON or as YAML. Rejects with POLICY_INVALID. */
export async function parsePolicyBody(host: Host, body: unknown, signal: AbortSignal): Promise<ParsedPolicy> {
  const candidates = typeof body === "string" ? { yaml: body } : { policy: body, pointer: "" };
  const policies = await host.policies.trials.read(candidates, signal);
  if (policies.length > 1)
    throw new Refusal(
      "POLICY_INVALID",
      `the body holds ${policies.length} policies, and one is taken here; POST /v1/policies/import-yaml takes several`,
    );
  return policies[0] as ParsedPolicy;
}
