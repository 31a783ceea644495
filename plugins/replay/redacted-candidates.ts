/** Refuses candidates that could find out redacted values of past requests. */
import {
  type CandidatePolicies,
  type CompiledPolicySet,
  type CoreHost,
  findRedactedReadOfPolicy,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";

/**
 * Throws INSUFFICIENT_SCOPE if a candidate can read a parameter that the active policies redact, because its decisions on
 * past requests would reveal the value. A caller that may activate policies can remove `redact` anyway.
 * @param candidates valid policies
 */
export async function assertCandidatesReadNoRedacted(
  { policies }: CoreHost,
  active: CompiledPolicySet,
  candidates: CandidatePolicies,
  credential: Pick<Credential, "hasScope">,
  signal: AbortSignal,
): Promise<void> {
  if (!active.redacts || credential.hasScope("policies:activate")) return;
  for (const { document } of await policies.trials.read(candidates, signal)) {
    const path = findRedactedReadOfPolicy(active, document);
    if (path !== null)
      throw new Refusal(
        "INSUFFICIENT_SCOPE",
        `the candidate "${document.policy}" can read ${path}, which the active policies redact; use a key with the scope policies:activate`,
      );
  }
}
