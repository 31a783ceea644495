/** Parses policies in request bodies, and builds the policy set that they would form with the active policies. */
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
import type { PolicyDocument, PolicySetDocument } from "../domain/policy/policy-types.ts";

/** @param pointer JSON pointer of the policy in the body, for errors */
function parseJsonPolicy(value: unknown, pointer: string): ParsedPolicy {
  const faults = validatePolicyDocument(value);
  if (faults.length > 0) {
    throw invalidPolicy(
      faults.slice(0, 20).map((fault) => ({ pointer: `${pointer}${fault.pointer}`, detail: fault.detail })),
    );
  }
  return compileAndHash([value as PolicyDocument], null)[0] as ParsedPolicy;
}

/** Returns at least one policy. Errors have line and column. */
function parseYamlPolicies(yaml: string): ParsedPolicy[] {
  const { documents, places, faults } = parsePolicies(yaml, "body");
  if (faults.length > 0)
    throw invalidPolicy(faults.slice(0, 20).map(({ line, column, message }) => fieldError(message, line, column)));
  const seen = new Set<string>();
  for (const [i, { policy }] of documents.entries()) {
    if (seen.has(policy))
      throw invalidPolicy([
        fieldError(
          `the policy "${policy}" appears twice; send it once`,
          places[i]?.line ?? null,
          places[i]?.column ?? null,
        ),
      ]);
    seen.add(policy);
  }
  return compileAndHash(documents, documents.length === 1 ? yaml : null);
}

function fieldError(detail: string, line: number | null, column: number | null): FieldError {
  return { detail, ...(line === null ? {} : { line }), ...(column === null ? {} : { column }) };
}

function compileAndHash(documents: PolicyDocument[], yaml: string | null): ParsedPolicy[] {
  try {
    compilePolicySet(
      buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
    );
  } catch (error) {
    if (error instanceof PolicyCompileError)
      throw invalidPolicy(error.faults.slice(0, 20).map((fault) => ({ detail: explainCompileFault(fault) })));
    throw error;
  }
  return documents.map((document) => {
    const text = canonicalText(document as unknown as JsonValue);
    return { document, text, digest: sha256Hex(utf8(text)), yaml };
  });
}

function invalidPolicy(errors: FieldError[]): Refusal {
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

/** Parses and compiles the policies of a request. Throws the Refusal `POLICY_INVALID`. */
export function parseCandidatePolicies(candidates: Candidates): ParsedPolicy[] {
  return "yaml" in candidates
    ? parseYamlPolicies(candidates.yaml)
    : [parseJsonPolicy(candidates.policy, candidates.pointer)];
}

/**
 * Returns the active policy set with the candidates, which replace active policies of the same name. With `alone`, returns
 * a set of only the candidates. Throws the Refusal `POLICY_INVALID`.
 */
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
