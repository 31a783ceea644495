/**
 * Validates the bundle of a policy source in the same way as policies from the API, so that a faulty source cannot
 * activate unknown effects.
 */
import { PolicySourceError, type PolicyBundle, type PolicyFault } from "../contract/policy-source.ts";
import { validatePolicyDocument } from "../domain/policy/parse/parse.ts";

/** Validates a bundle. Throws PolicySourceError with all faults. */
export function validateBundle(sourceName: string, bundle: PolicyBundle): void {
  if (!Array.isArray(bundle?.policies))
    throw new PolicySourceError(
      `the policy source "${sourceName}" did not return a list of policies; return { policies: [{ document, origin }], source }`,
    );
  const source: unknown = bundle.source;
  if (
    typeof source !== "object" ||
    source === null ||
    Object.values(source).some((value) => typeof value !== "string")
  ) {
    throw new PolicySourceError(
      `the policy source "${sourceName}" must return a source whose values are strings, such as { kind: "url", url }`,
    );
  }
  const faults: PolicyFault[] = [];
  const origins = new Map<string, string>();
  for (const { document, origin } of bundle.policies) {
    const file = typeof origin === "string" ? origin : sourceName;
    const fault = (message: string): number => faults.push({ file, line: null, column: null, message });
    const schemaFaults = validatePolicyDocument(document);
    for (const { pointer, detail } of schemaFaults) fault(`${pointer === "" ? "the policy" : pointer}: ${detail}`);
    if (schemaFaults.length > 0) continue;
    const other = origins.get(document.policy);
    if (other !== undefined) fault(`policy "${document.policy}" is also in ${other}; give each policy its own name`);
    origins.set(document.policy, file);
  }
  if (faults.length > 0)
    throw new PolicySourceError(
      `${faults.length} ${faults.length === 1 ? "fault" : "faults"} in the policies of "${sourceName}"`,
      faults,
      bundle.source,
    );
}
