/** From YAML text to policies and their tests, with every fault at its line and column. */
import type { Static, TSchema } from "@sinclair/typebox";
import { TypeCompiler, type TypeCheck } from "@sinclair/typebox/compiler";
import { LineCounter, isMap, isScalar, isSeq, parseAllDocuments, visit, type Document, type Node } from "yaml";
import { parseDuration } from "../time.ts";
import { explainFault, siblingsAt } from "../validation.ts";
import { compileCondition } from "./condition.ts";
import { PolicySchema, PolicyTestSchema } from "./schema.ts";
import type { PolicyDocument } from "./types.ts";

/** `line` and `column` are 1-based; null where the fault has no place. */
export interface TextFault {
  file: string;
  line: number | null;
  column: number | null;
  message: string;
}

export type PolicyTest = Static<typeof PolicyTestSchema>;

/** A fault inside a value: RFC 6901 pointer and words. */
export interface ValueFault {
  pointer: string;
  detail: string;
}

const MIN_EXPIRY = 1_000;
const MAX_EXPIRY = 30 * 86_400_000;
const MAX_FAULTS = 50;
/** Bytes of one file; anything larger is no policy. */
export const MAX_FILE = 4 * 1024 * 1024;

const policyCheck = TypeCompiler.Compile(PolicySchema);
const testCheck = TypeCompiler.Compile(PolicyTestSchema);

export function parsePolicies(text: string, file: string): { documents: PolicyDocument[]; faults: TextFault[] } {
  const { values, faults } = read(text, file, validatePolicyDocument);
  const documents = values as PolicyDocument[];
  if (faults.length === 0 && documents.length === 0) faults.push({ file, line: 1, column: 1, message: "the file holds no policy" });
  return { documents, faults };
}

export function parsePolicyTests(text: string, file: string): { tests: PolicyTest[]; faults: TextFault[] } {
  const { values, faults } = read(text, file, (value) => schemaFaults(testCheck, PolicyTestSchema, value));
  return { tests: values as PolicyTest[], faults };
}

/** What is wrong with a policy that came as JSON; empty when nothing is. */
export function validatePolicyDocument(value: unknown): ValueFault[] {
  const faults = schemaFaults(policyCheck, PolicySchema, value);
  return faults.length > 0 ? faults : meaningFaults(value as PolicyDocument);
}

function schemaFaults(check: TypeCheck<TSchema>, schema: TSchema, value: unknown): ValueFault[] {
  if (check.Check(value)) return [];
  const faults = new Map<string, string>();
  for (const error of check.Errors(value)) {
    if (faults.size >= MAX_FAULTS) break;
    if (!faults.has(error.path)) faults.set(error.path, explainFault(error, siblingsAt(schema, error.path)));
  }
  return [...faults].map(([pointer, detail]) => ({ pointer, detail }));
}

/** What a schema cannot say. */
function meaningFaults(policy: PolicyDocument): ValueFault[] {
  const faults: ValueFault[] = [];
  const names = new Map<string, number>();
  for (const [i, rule] of policy.rules.entries()) {
    const at = `/rules/${i}`;
    const first = names.get(rule.name);
    if (first !== undefined) faults.push({ pointer: `${at}/name`, detail: `the rule "${rule.name}" stands twice in this policy; give each rule a name of its own` });
    names.set(rule.name, i);
    if (rule.approval !== undefined && rule.effect !== "require_approval") {
      faults.push({ pointer: `${at}/approval`, detail: `approval has no meaning with the effect "${rule.effect}"; remove it or use require_approval` });
    }
    const expiry = rule.approval?.expires_in;
    if (expiry !== undefined) {
      const ms = parseDuration(expiry);
      if (ms === null) faults.push({ pointer: `${at}/approval/expires_in`, detail: `"${expiry}" is not a duration such as 30m, 1h or 7d` });
      else if (ms < MIN_EXPIRY || ms > MAX_EXPIRY) faults.push({ pointer: `${at}/approval/expires_in`, detail: `"${expiry}" does not lie between 1s and 30d` });
    }
    if (rule.when !== undefined) {
      const compiled = compileCondition(rule.when);
      if (!compiled.ok) faults.push({ pointer: `${at}/when`, detail: compiled.message });
    }
  }
  return faults;
}

function read(text: string, file: string, validate: (value: unknown) => ValueFault[]): { values: unknown[]; faults: TextFault[] } {
  if (text.length > MAX_FILE) return { values: [], faults: [{ file, line: null, column: null, message: `the file is larger than ${MAX_FILE} bytes` }] };
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: true, version: "1.2", merge: false });
  const documents: Document[] = Array.isArray(parsed) ? (parsed as Document[]) : [];
  const values: unknown[] = [];
  const faults: TextFault[] = [];
  const at = (offset: number | null, message: string): void => {
    const place = offset === null ? null : lines.linePos(offset);
    if (faults.length < MAX_FAULTS) faults.push({ file, line: place?.line ?? null, column: place?.col ?? null, message });
  };
  for (const document of documents) {
    if (document.errors.length > 0) {
      for (const error of document.errors) at(error.pos[0], error.message.split(" at line ")[0] ?? error.message);
      continue;
    }
    if (document.contents === null) continue;
    const plain = plainValue(document, at);
    if (plain === undefined) continue;
    const wrong = validate(plain);
    for (const { pointer, detail } of wrong) at(offsetOf(document, pointer), pointer === "" ? detail : `${pointer.slice(1).replaceAll("/", ".")}: ${detail}`);
    values.push(plain);
  }
  return { values: faults.length === 0 ? values : [], faults };
}

/** The JSON value of a document, or undefined after a fault: what JSON cannot say is refused where it stands. */
function plainValue(document: Document, at: (offset: number | null, message: string) => void): unknown {
  let sound = true;
  visit(document, {
    Scalar(_, node) {
      const { value } = node;
      const exact = typeof value !== "number" || (Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value)));
      if (exact && (value === null || ["string", "number", "boolean"].includes(typeof value))) return;
      sound = false;
      at(node.range?.[0] ?? null, typeof value === "number" ? `the number ${String(node.source)} cannot be represented exactly; write it as text` : "this value is neither text, number, boolean nor null");
    },
    Pair(_, pair) {
      if (isScalar(pair.key) && typeof pair.key.value === "string") return;
      sound = false;
      at((pair.key as Node | null)?.range?.[0] ?? null, "keys must be text");
    },
  });
  if (!sound) return undefined;
  try {
    // Aliases are bounded, so that a small file cannot unfold into a huge one.
    return JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: 50 }))) as unknown;
  } catch (error) {
    at(null, error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

/** Where the key or element behind a pointer stands, or the nearest one above it. */
function offsetOf(document: Document, pointer: string): number | null {
  let node: unknown = document.contents;
  let offset = document.contents?.range?.[0] ?? null;
  for (const raw of pointer.split("/").slice(1)) {
    const segment = raw.replaceAll("~1", "/").replaceAll("~0", "~");
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && item.key.value === segment);
      if (pair === undefined) return offset;
      offset = (pair.key as Node).range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(segment)];
      offset = (node as Node | undefined)?.range?.[0] ?? offset;
    } else {
      return offset;
    }
  }
  return offset;
}
