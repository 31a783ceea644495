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
import type { CandidatePolicies, ParsedPolicy } from "../contract/trials.ts";
import type { PolicyDocument, PolicySetDocument } from "../domain/policy/policy-types.ts";

/** @param pointer the JSON pointer of the policy in the body, for errors */
function parseJsonPolicy(value: unknown, pointer: string): ParsedPolicy {
  const faults = validatePolicyDocument(value);
  if (faults.length > 0) {
    throw invalidPolicyRefusal(
      faults.slice(0, 20).map((fault) => ({ pointer: `${pointer}${fault.pointer}`, detail: fault.detail })),
    );
  }
  const document = value as PolicyDocument;
  const compileFaults = findCompileFaults([document]);
  if (compileFaults.length > 0)
    throw invalidPolicyRefusal(compileFaults.slice(0, 20).map(({ message }) => ({ detail: message })));
  return hashPolicy(document, null);
}

/** Parses and compiles at least one policy. Errors have line and column if known. */
function parseYamlPolicies(yaml: string): ParsedPolicy[] {
  const { documents, faults } = readYamlPolicies(yaml);
  if (faults.length > 0) throw invalidPolicyRefusal(faults.slice(0, 20));
  return documents.map((document) => hashPolicy(document, documents.length === 1 ? yaml : null));
}

/** Parses and compiles policies. Returns faults instead of throwing, with line and column if known. */
export function readYamlPolicies(yaml: string): {
  documents: PolicyDocument[];
  faults: FieldError[];
  warnings: FieldError[];
} {
  const { documents, places, faults, warnings } = parsePolicies(yaml, "body");
  const seen = new Set<string>();
  const repeated = documents.flatMap(({ policy }, i): FieldError[] => {
    if (!seen.has(policy)) return (seen.add(policy), []);
    return [fieldError({ message: `the policy "${policy}" appears twice; send it once`, ...places[i] })];
  });
  const all = [...faults.map(fieldError), ...repeated];
  const compiled =
    all.length > 0 ? [] : findCompileFaults(documents).map((fault) => fieldError({ ...fault, ...places[fault.index] }));
  return { documents, faults: [...all, ...compiled], warnings: warnings.map(fieldError) };
}

/** Converts a fault in YAML to an error of the API. A fault without a position has no line and column. */
export function fieldError({
  message,
  line = null,
  column = null,
}: {
  message: string;
  line?: number | null;
  column?: number | null;
}): FieldError {
  return { detail: message, ...(line === null ? {} : { line }), ...(column === null ? {} : { column }) };
}

/** Compiles the policies, and returns the faults. `index` is the policy's index in `documents`. */
function findCompileFaults(documents: readonly PolicyDocument[]): { message: string; index: number }[] {
  try {
    compilePolicySet(
      buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
      () => null,
    );
    return [];
  } catch (error) {
    if (!(error instanceof PolicyCompileError)) throw error;
    return error.faults.map((fault) => ({
      message: explainCompileFault(fault),
      index: documents.findIndex(({ policy }) => policy === fault.policy),
    }));
  }
}

function hashPolicy(document: PolicyDocument, yaml: string | null): ParsedPolicy {
  const text = canonicalText(document as unknown as JsonValue);
  return { document, text, digest: sha256Hex(utf8(text)), yaml };
}

function invalidPolicyRefusal(errors: FieldError[]): Refusal {
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
export function parseCandidatePolicies(candidates: CandidatePolicies): ParsedPolicy[] {
  const policies =
    "yaml" in candidates
      ? parseYamlPolicies(candidates.yaml)
      : [parseJsonPolicy(candidates.policy, candidates.pointer)];
  if (candidates.enforce !== true) return policies;
  return policies.map(({ document, yaml }) => hashPolicy({ ...document, mode: "enforce" }, yaml));
}

/**
 * Returns the set of the active policies and the candidates. A candidate replaces the active policy of the same name.
 * If `alone` is true, the set contains only the candidates. Throws the Refusal `POLICY_INVALID`.
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
