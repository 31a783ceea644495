/** Compiles rules for what tools return, and evaluates their conditions. */
import type { ActionRequest } from "../../actions.ts";
import type { JsonValue } from "../../json.ts";
import { DYN } from "../check/static-types.ts";
import { findTypeFault } from "../check/type-check.ts";
import type { Meter } from "../condition/cel-meter.ts";
import type { Bindings } from "../condition/cel-plan.ts";
import { compilePattern, MAX_PATTERN_INSTRUCTIONS, patternSlot, type PatternSlot } from "../condition/cel-patterns.ts";
import { toCelValue } from "../condition/cel-values.ts";
import {
  Activation,
  compileCondition,
  type Condition,
  type ConditionResult,
  NO_NAMED_VALUES,
  type NamedValues,
} from "../condition/condition.ts";
import type { ResultEffect, ResultRuleDocument } from "../policy-types.ts";
import { normalizePatterns } from "./name-patterns.ts";

/** Text in place of what a rule redacts. */
const DEFAULT_REPLACEMENT = "[redacted]";
const JSON_TYPES = ["string", "number", "boolean", "null", "array", "object"];

export interface CompiledResultRule {
  name: string;
  effect: ResultEffect;
  tools: readonly string[] | null;
  operations: readonly string[] | null;
  agents: readonly string[] | null;
  /** RE2. Empty if the rule has no patterns. */
  patterns: readonly string[];
  /** Keeps the compiled patterns. */
  slots: readonly PatternSlot[];
  largerThan: number | null;
  /** JSON types and globs of media types; null if the rule does not test the type. */
  types: readonly string[] | null;
  condition: Condition | null;
  /** Segments of the members to replace. */
  members: readonly (readonly string[])[];
  replacement: string;
  labels: readonly string[];
  reason: string | null;
}

/** A fault of a result rule. `pointer` is relative to the rule. */
interface ResultRuleFault {
  pointer: string;
  message: string;
  offset?: number;
}

/** Variables that are facts of a decision. An output is inspected after the decision, so they would have other values. */
const UNAVAILABLE = new Map(
  ["agent_groups", "agent_metadata", "principal", "session"].map((name) => [
    name,
    `the condition of a result rule cannot read ${name}; it reads result, agent, tool, operation, params, context and now`,
  ]),
);
const NAMES: NamedValues = { ...NO_NAMED_VALUES, names: ["result"], unavailable: UNAVAILABLE };

export function compileResultRule(
  { name, match = {}, tool, operation, agent, ...rule }: ResultRuleDocument,
  caseSensitive: boolean,
): { rule: CompiledResultRule; faults: ResultRuleFault[] } {
  const faults: ResultRuleFault[] = [];
  const patterns = [match.pattern ?? []].flat();
  for (const [i, pattern] of patterns.entries()) {
    const message = findPatternFault(pattern);
    if (message !== null)
      faults.push({ pointer: typeof match.pattern === "string" ? "/match/pattern" : `/match/pattern/${i}`, message });
  }
  const types = match.type === undefined ? null : [match.type].flat();
  for (const type of types ?? [])
    if (!type.includes("/") && !JSON_TYPES.includes(type))
      faults.push({
        pointer: "/match/type",
        message: `"${type}" is neither a JSON type (${JSON_TYPES.join(", ")}) nor a media type such as image/*`,
      });
  let condition: Condition | null = null;
  if (match.when !== undefined) {
    const compiled = compileCondition(match.when, NAMES);
    const fault = compiled.ok
      ? findTypeFault(match.when, "condition", undefined, new Map([["result", DYN]]))
      : { message: compiled.message, offset: compiled.offset };
    if (fault !== null) faults.push({ pointer: "/match/when", ...fault });
    if (compiled.ok) ({ condition } = compiled);
  }
  const { effect, members = [], labels = [], replacement, reason = null } = rule;
  if (effect === "redact" && patterns.length === 0 && members.length === 0)
    faults.push({ pointer: "/effect", message: "redact needs match.pattern or members, which say what to replace" });
  if (effect !== "redact" && (members.length > 0 || replacement !== undefined))
    faults.push({
      pointer: members.length > 0 ? "/members" : "/replacement",
      message: `members and replacement have no meaning with the effect "${effect}"; remove them or use redact`,
    });
  if (effect === "allow" && labels.length === 0)
    faults.push({
      pointer: "/effect",
      message: "a rule that allows an output changes nothing without labels; add labels",
    });
  if (patterns.some((pattern) => (replacement ?? DEFAULT_REPLACEMENT) !== "" && isFoundIn(pattern, replacement)))
    faults.push({
      pointer: "/replacement",
      message: "a pattern of the rule also matches the replacement, so nothing could ever pass; choose other texts",
    });
  const list = (value: string | string[] | undefined): readonly string[] | null =>
    value === undefined ? null : normalizePatterns([value].flat(), caseSensitive);
  return {
    faults,
    rule: {
      name,
      effect,
      tools: list(tool),
      operations: list(operation),
      agents: list(agent),
      patterns,
      slots: patterns.map(patternSlot),
      largerThan: match.larger_than ?? null,
      types,
      condition,
      members: members.map((path) => path.split(".").slice(1)),
      replacement: replacement ?? DEFAULT_REPLACEMENT,
      labels: [...labels].sort(),
      reason,
    },
  };
}

function findPatternFault(pattern: string): string | null {
  try {
    const { size, regex } = compilePattern(pattern);
    if (size > MAX_PATTERN_INSTRUCTIONS)
      return `the pattern is too large: ${size} instructions, at most ${MAX_PATTERN_INSTRUCTIONS}`;
    return regex.test("") ? "the pattern matches the empty text, so it would be found everywhere" : null;
  } catch (error) {
    return `the pattern is not valid RE2: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function isFoundIn(pattern: string, replacement = DEFAULT_REPLACEMENT): boolean {
  try {
    return compilePattern(pattern).regex.test(replacement);
  } catch {
    return false;
  }
}

/** Evaluates the condition of a result rule. */
export function evaluateResultCondition(
  condition: Condition,
  request: ActionRequest,
  result: JsonValue,
  now: number,
  meter: Meter,
): ConditionResult {
  return condition.evaluate(new ResultActivation(request, result, now, meter));
}

const NO_PRINCIPAL = { key_id: "", name: "", agent_id: null, owner: null };

class ResultActivation extends Activation {
  private readonly result: JsonValue;

  constructor(request: ActionRequest, result: JsonValue, now: number, meter: Meter) {
    super(request, { principal: NO_PRINCIPAL }, now, meter);
    this.result = result;
  }

  override bindings(namedValues: NamedValues): Bindings {
    return { ...super.bindings(namedValues), result: toCelValue(this.result) };
  }
}
