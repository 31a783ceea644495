/** A source's offer is checked like a policy from the API, whoever wrote the source: an effect that nobody knows must not come to be active. */
import { PolicySourceError, type PolicyBundle, type PolicyFault } from "../contract/policy-source.ts";
import { validatePolicyDocument } from "../domain/policy/parse/parse.ts";

/** Throws PolicySourceError with every fault. */
export function checkBundle(sourceName: string, bundle: PolicyBundle): void {
  if (!Array.isArray(bundle?.policies))
    throw new PolicySourceError(
      `the policy source "${sourceName}" answered no list of policies; answer { policies: [{ document, origin }], source }`,
    );
  const source: unknown = bundle.source;
  if (
    typeof source !== "object" ||
    source === null ||
    Object.values(source).some((value) => typeof value !== "string")
  ) {
    throw new PolicySourceError(
      `the policy source "${sourceName}" must say with strings where its policies came from, such as { kind: "url", url }`,
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
    if (other !== undefined)
      fault(`policy "${document.policy}" stands in ${other} too; give each policy a name of its own`);
    origins.set(document.policy, file);
  }
  if (faults.length > 0)
    throw new PolicySourceError(
      `${faults.length} ${faults.length === 1 ? "fault" : "faults"} in what "${sourceName}" offered`,
      faults,
      bundle.source,
    );
}
