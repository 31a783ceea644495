/** Parses and compiles the policies in a request body. Only policies that compile are stored. */
import type { CoreHost, ParsedPolicy } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";

export const YAML_TYPES = ["application/yaml", "application/x-yaml", "text/yaml"] as const;

/**
 * Accepted content types. They include the types that clients send for unknown files; the last is the default of `curl
 * --data-binary`.
 */
export const FILE_TYPES = [...YAML_TYPES, "text/plain", "application/x-www-form-urlencoded"] as const;

/** Parses one policy from JSON or YAML. Rejects with POLICY_INVALID. */
export async function parsePolicyBody(host: CoreHost, body: unknown, signal: AbortSignal): Promise<ParsedPolicy> {
  const candidates = typeof body === "string" ? { yaml: body } : { policy: body, pointer: "" };
  const policies = await host.policies.trials.read(candidates, signal);
  if (policies.length > 1)
    throw new Refusal(
      "POLICY_INVALID",
      `the body contains ${policies.length} policies but must contain one; send several to POST /v1/policies/import-yaml`,
    );
  return policies[0] as ParsedPolicy;
}
