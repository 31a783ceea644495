/** Rejects candidates that could reveal redacted values of past requests. */
import type { CandidatePolicies, CompiledPolicySet, CoreHost } from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";

/**
 * Throws INSUFFICIENT_SCOPE if a candidate can read a parameter that the active policies redact, because its decisions
 * on past requests would reveal the value. Callers with `policies:activate` are exempt, because they could activate
 * policies without `redact` instead.
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
  const read = await policies.trials.findRedactedRead(active, candidates, signal);
  if (read !== null)
    throw new Refusal(
      "INSUFFICIENT_SCOPE",
      `the candidate "${read.policy}" can read ${read.path}, which the active policies redact; use a key with the scope policies:activate`,
    );
}
