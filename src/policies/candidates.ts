/** Policies in bodies: what compiles, and the set that it would make with the active ones. */
import { Refusal, type FieldError } from "../contract/errors.ts";
import { canonicalText } from "../domain/canonical.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import type { JsonValue } from "../domain/json.ts";
import {
  buildPolicySet,
  compilePolicySet,
  explainCompileFault,
  PolicyCompileError,
  type CompiledPolicySet,
} from "../domain/policy/compile/compile.ts";
import { parsePolicies, validatePolicyDocument } from "../domain/policy/parse/parse.ts";
import type { Candidates, ParsedPolicy } from "../contract/trials.ts";
import type { PolicyDocument, PolicySetDocument } from "../domain/policy/types.ts";

/** @param pointer where the policy stands in the body */
function fromJson(value: unknown, pointer: string): ParsedPolicy {
  const faults = validatePolicyDocument(value);
  if (faults.length > 0) {
    throw refused(
      faults.slice(0, 20).map((fault) => ({ pointer: `${pointer}${fault.pointer}`, detail: fault.detail })),
    );
  }
  return sealed([value as PolicyDocument])[0] as ParsedPolicy;
}

/** At least one. Errors carry line and column. */
function policiesFromYaml(yaml: string): ParsedPolicy[] {
  const { documents, places, faults } = parsePolicies(yaml, "body");
  if (faults.length > 0)
    throw refused(faults.slice(0, 20).map(({ line, column, message }) => located(message, line, column)));
  const seen = new Set<string>();
  for (const [i, { policy }] of documents.entries()) {
    if (seen.has(policy))
      throw refused([
        located(
          `the policy "${policy}" appears twice; send it once`,
          places[i]?.line ?? null,
          places[i]?.column ?? null,
        ),
      ]);
    seen.add(policy);
  }
  return sealed(documents);
}

function located(detail: string, line: number | null, column: number | null): FieldError {
  return { detail, ...(line === null ? {} : { line }), ...(column === null ? {} : { column }) };
}

function sealed(documents: PolicyDocument[]): ParsedPolicy[] {
  try {
    compilePolicySet(
      buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
    );
  } catch (error) {
    if (error instanceof PolicyCompileError)
      throw refused(error.faults.slice(0, 20).map((fault) => ({ detail: explainCompileFault(fault) })));
    throw error;
  }
  return documents.map((document) => {
    const text = canonicalText(document as unknown as JsonValue);
    return { document, text, digest: sha256Hex(utf8(text)) };
  });
}

function refused(errors: FieldError[]): Refusal {
  const first = errors[0];
  const at =
    first?.line === undefined
      ? (first?.pointer ?? "")
      : `line ${first.line}${first.column === undefined ? "" : `, column ${first.column}`}`;
  return new Refusal(
    "POLICY_INVALID",
    `the policy does not compile: ${at === "" ? "" : `${at}: `}${first?.detail ?? ""}`,
    { errors },
  );
}

/** Throws POLICY_INVALID. */
export function parseCandidatePolicies(sent: Candidates): ParsedPolicy[] {
  return "yaml" in sent ? policiesFromYaml(sent.yaml) : [fromJson(sent.policy, sent.pointer)];
}

/** The set in which the candidates take the place of the active policies of their names, or join them; or stand `alone`. */
export function buildCandidateSet(
  active: PolicySetDocument,
  candidates: readonly ParsedPolicy[],
  alone: boolean,
): CompiledPolicySet {
  const stored = new Map(active.policies.map((member) => [member.policy, member]));
  const members = candidates.map(({ document }) => ({
    policy: document.policy,
    version: (stored.get(document.policy)?.version ?? 0) + 1,
    definition: document,
  }));
  const names = new Set(members.map(({ policy }) => policy));
  try {
    return compilePolicySet(
      buildPolicySet([...(alone ? [] : active.policies.filter(({ policy }) => !names.has(policy))), ...members]),
    );
  } catch (error) {
    if (error instanceof PolicyCompileError) throw new Refusal("POLICY_INVALID", error.message);
    throw error;
  }
}
