/** From a body to policies that compile: nothing else is stored. */
import { Refusal, type FieldError } from "../../src/contract/errors.ts";
import type { RequestContext } from "../../src/contract/resource.ts";
import { canonicalText } from "../../src/domain/canonical.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import type { JsonValue } from "../../src/domain/json.ts";
import { buildPolicySet, compilePolicySet, PolicyCompileError } from "../../src/domain/policy/compile.ts";
import { parsePolicies, validatePolicyDocument } from "../../src/domain/policy/parse.ts";
import type { PolicyDocument } from "../../src/domain/policy/types.ts";

export interface ReadPolicy {
  document: PolicyDocument;
  /** Canonical JSON, and its SHA-256 in hex. */
  text: string;
  digest: string;
}

export const YAML_TYPES = ["application/yaml", "application/x-yaml", "text/yaml"] as const;

/** One policy, as JSON or as YAML. Throws POLICY_INVALID. */
export function policyOf(context: RequestContext): ReadPolicy {
  if (typeof context.body !== "string") return fromJson(context.body, "");
  const found = policiesFromYaml(context.body);
  if (found.length > 1) throw new Refusal("POLICY_INVALID", `the body holds ${found.length} policies, and one is taken here; POST /v1/policies/import-yaml takes several`);
  return found[0] as ReadPolicy;
}

/** @param pointer where the policy stands in the body */
export function fromJson(value: unknown, pointer: string): ReadPolicy {
  const faults = validatePolicyDocument(value);
  if (faults.length > 0) {
    throw refused(faults.slice(0, 20).map((fault) => ({ pointer: `${pointer}${fault.pointer}`, detail: fault.detail })));
  }
  return sealed([value as PolicyDocument])[0] as ReadPolicy;
}

/** At least one. Errors carry line and column. */
export function policiesFromYaml(yaml: string): ReadPolicy[] {
  const { documents, places, faults } = parsePolicies(yaml, "body");
  if (faults.length > 0) throw refused(faults.slice(0, 20).map(({ line, column, message }) => located(message, line, column)));
  const seen = new Set<string>();
  for (const [i, { policy }] of documents.entries()) {
    if (seen.has(policy)) throw refused([located(`the policy "${policy}" stands twice; send it once`, places[i]?.line ?? null, places[i]?.column ?? null)]);
    seen.add(policy);
  }
  return sealed(documents);
}

function located(detail: string, line: number | null, column: number | null): FieldError {
  return { detail, ...(line === null ? {} : { line }), ...(column === null ? {} : { column }) };
}

function sealed(documents: PolicyDocument[]): ReadPolicy[] {
  try {
    compilePolicySet(buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition }))));
  } catch (error) {
    if (error instanceof PolicyCompileError) throw refused(error.faults.slice(0, 20).map(({ policy, rule, message }) => ({ detail: `policy "${policy}"${rule === null ? "" : `, rule "${rule}"`} ${message}` })));
    throw error;
  }
  return documents.map((document) => {
    const text = canonicalText(document as unknown as JsonValue);
    return { document, text, digest: sha256Hex(utf8(text)) };
  });
}

function refused(errors: FieldError[]): Refusal {
  const first = errors[0];
  const at = first?.line === undefined ? (first?.pointer ?? "") : `line ${first.line}${first.column === undefined ? "" : `, column ${first.column}`}`;
  return new Refusal("POLICY_INVALID", `the policy does not compile: ${at === "" ? "" : `${at}: `}${first?.detail ?? ""}`, { errors });
}
