/** Parses YAML into policies and tests, and reports faults with their lines and columns. */
import type { Static, TSchema } from "@sinclair/typebox";
import { TypeCompiler, type TypeCheck } from "@sinclair/typebox/compiler";
import { ValueErrorType } from "@sinclair/typebox/errors";
import { MAX_REJECTION_HOLDS_MS, MAX_VALIDITY_MS, MAX_EXPIRY_MS } from "./bounds.ts";
import type { JsonValue } from "../../json.ts";
import { parseDuration } from "../../time.ts";
import { findSimilarName } from "../../similar-name.ts";
import { explainFault, lastPointerSegment, siblingNames } from "../../validation.ts";
import { compileCondition, compileExpression, type NamedValues } from "../condition/condition.ts";
import { namedValuesForLimits } from "../condition/named-values.ts";
import { compileInputs } from "../compile/compile-inputs.ts";
import { findFactFaults } from "../check/fact-faults.ts";
import { inferParamsType } from "../check/params-type.ts";
import { findApproverFaults } from "../check/approver-faults.ts";
import { findGrantFaults } from "../check/grant-faults.ts";
import { findObligationFaults } from "../check/obligation-faults.ts";
import { findReviewerFaults } from "../check/reviewer-faults.ts";
import { findSuggestedFaults } from "../check/suggested-faults.ts";
import { findTestFaults } from "../check/test-faults.ts";
import { readUsageName } from "../compile/compile-definition.ts";
import { parseEffectKey } from "../compile/compile-effect-key.ts";
import { findPreviewFault } from "../check/preview-faults.ts";
import { findPatternFaults } from "../check/pattern-faults.ts";
import { findRuleWarnings, type RuleWarning } from "../check/rule-warnings.ts";
import { findTypeFault, type ExpressionPurpose } from "../check/type-check.ts";
import { inferNamedTypes } from "../check/named-types.ts";
import { HISTORY_VARIABLE } from "../condition/cel-history.ts";
import { factVariable } from "../condition/source-facts.ts";
import { DYN, type StaticType } from "../check/static-types.ts";
import { PolicySchema, PolicyTestSchema, SampleActionSchema, SharedDataSchema } from "./policy-schema.ts";
import {
  findDataFaults,
  findEnvironmentFaults,
  resolveSharedData,
  type SharedData,
  type SharedDataFile,
} from "./shared-data.ts";
import { compileResultRule } from "../compile/compile-results.ts";
import type { LimitDocument, PolicyDocument, ResultRuleDocument, RuleDocument } from "../policy-types.ts";
import { parseWindow } from "../decide/window.ts";
import { readYaml, type SourcePosition, type YamlValue } from "../../yaml.ts";

/** Kind of fault. Stable, so that programs can compare it. */
export type FaultKind =
  | "yaml-syntax"
  | "unknown-key"
  | "missing-key"
  | "wrong-value"
  | "condition"
  | "pattern"
  | "repeated-name"
  | "unreadable-file"
  | "set-too-large"
  | "failing-test"
  | "too-many-tests"
  | WarningKind;

/** Kinds of warnings. The policy is still accepted. */
export type WarningKind = "unknown-channel" | "unloaded-policy" | "untested-rule" | RuleWarning["kind"];

/** A fault in a file. `line` and `column` start at 1; null if the fault has no position. */
export interface TextFault {
  kind?: FaultKind;
  file: string;
  line: number | null;
  column: number | null;
  message: string;
}

type TestDocument = Static<typeof PolicyTestSchema>;
/** The tests of one YAML document. Lists that the document omits are empty. */
export type PolicyTest = Omit<TestDocument, "cases" | "scenarios"> & {
  cases: NonNullable<TestDocument["cases"]>;
  scenarios: NonNullable<TestDocument["scenarios"]>;
};
export type SampleAction = Static<typeof SampleActionSchema>;

/** A fault in a value. `pointer` is an RFC 6901 pointer. */
interface ValueFault {
  pointer: string;
  detail: string;
  /** Default: `wrong-value`. */
  kind?: FaultKind;
  /** Whether the key is at fault instead of its value. */
  key?: boolean;
  /** Offset within the string to which `pointer` refers, in UTF-16 code units. */
  offset?: number;
}

/** Bounds of `expires_in`, `valid_for` and `rejection_holds`. Milliseconds. */
const TERMS = {
  expires_in: { least: 1_000, most: MAX_EXPIRY_MS, between: "1s and 30d" },
  valid_for: { least: 1_000, most: MAX_VALIDITY_MS, between: "1s and 7d" },
  rejection_holds: { least: 0, most: MAX_REJECTION_HOLDS_MS, between: "0s and 90d" },
} as const;
const MAX_FAULTS = 50;
/** Maximum number of characters of a file. */
export const MAX_FILE_LENGTH = 4 * 1024 * 1024;

const policyCheck = TypeCompiler.Compile(PolicySchema);
const dataCheck = TypeCompiler.Compile(SharedDataSchema);
const testCheck = TypeCompiler.Compile(PolicyTestSchema);
const actionCheck = TypeCompiler.Compile(SampleActionSchema);

/** The position of a rule's or limit's name. */
export interface RulePosition extends SourcePosition {
  /** Returns the first and last line of the rule's condition; null if the rule has no condition. */
  conditionLines(): readonly [first: number, last: number] | null;
}

/** Returns the positions of the rules and limits of a policy, keyed by their names. */
function locateRules(yaml: YamlValue): ReadonlyMap<string, RulePosition> {
  const { rules, limits = [] } = yaml.value as unknown as PolicyDocument;
  const placeOf = ({ name, when }: Pick<RuleDocument, "name" | "when">, pointer: string): [string, RulePosition] => [
    name,
    {
      ...yaml.locate(`${pointer}/name`),
      conditionLines: () =>
        when === undefined
          ? null
          : [
              yaml.locate(`${pointer}/when`, { offset: 0 }).line,
              yaml.locate(`${pointer}/when`, { offset: when.trimEnd().length - 1 }).line,
            ],
    },
  ];
  return new Map([
    ...rules.map((rule, i) => placeOf(rule, `/rules/${i}`)),
    ...limits.map((limit, i) => placeOf(limit, `/limits/${i}`)),
  ]);
}

/**
 * Parses all policies of a file, or returns its faults. `places[i]` is the position of the name of `documents[i]`, and
 * `rulePlaces[i]` has the positions of its rules and limits. `warnings` are about rules that cannot have an effect.
 * @param shared the shared data that policies can reference; null if policies must contain their data
 * @example
 * const { documents, faults } = parsePolicies(text, "refunds.yaml");
 * if (faults.length > 0) throw new PolicySourceError("refunds.yaml has faults", faults, source);
 */
export function parsePolicies(
  text: string,
  file: string,
  shared: SharedData | null = null,
): {
  documents: PolicyDocument[];
  places: SourcePosition[];
  rulePlaces: ReadonlyMap<string, RulePosition>[];
  faults: TextFault[];
  warnings: TextFault[];
} {
  const { values, faults } = readFile(text, file, (value, yaml) => {
    const resolved = shared === null ? { value, faults: [] } : resolveSharedData(value, shared);
    yaml.value = resolved.value;
    // Report only the missing data, because conditions that read it would report the same mistake again.
    return resolved.faults.length > 0 ? resolved.faults : validatePolicyDocument(resolved.value);
  });
  if (faults.length === 0 && values.length === 0)
    faults.push({
      kind: "unreadable-file",
      file,
      line: 1,
      column: 1,
      message: "the file contains no policy; add one, or remove the file",
    });
  return {
    documents: values.map(({ value }) => value as unknown as PolicyDocument),
    places: values.map((yaml) => yaml.locate("/policy")),
    rulePlaces: values.map(locateRules),
    faults,
    warnings: values.flatMap((yaml) =>
      findRuleWarnings(yaml.value as unknown as PolicyDocument).map(({ kind, pointer, message, ...at }) => ({
        kind,
        file,
        ...yaml.locate(pointer, at),
        message,
      })),
    ),
  };
}

/** Parses all shared data of a file, or returns its faults. `places[i]` is the position of the name of `data[i]`. */
export function parseSharedData(
  text: string,
  file: string,
): { data: SharedDataFile[]; places: SourcePosition[]; faults: TextFault[] } {
  const { values, faults } = readFile(text, file, (value) => {
    const schemaFaults = findSchemaFaults(dataCheck, SharedDataSchema, value);
    return schemaFaults.length > 0 ? schemaFaults : findEnvironmentFaults(value as unknown as SharedDataFile);
  });
  return {
    data: values.map(({ value }) => value as unknown as SharedDataFile),
    places: values.map((yaml) => yaml.locate("/data")),
    faults,
  };
}

/** Parses all tests of a file, or returns its faults. `locators[i]` returns positions within `tests[i]`. */
export function parsePolicyTests(
  text: string,
  file: string,
): { tests: PolicyTest[]; locators: ((pointer: string) => SourcePosition)[]; faults: TextFault[] } {
  const { values, faults } = readFile(text, file, (value) => {
    const schemaFaults = findSchemaFaults(testCheck, PolicyTestSchema, value);
    return schemaFaults.length > 0 ? schemaFaults : findTestFaults(value as unknown as TestDocument);
  });
  return {
    tests: values.map(({ value }) => {
      const document = value as unknown as TestDocument;
      return { ...document, cases: document.cases ?? [], scenarios: document.scenarios ?? [] };
    }),
    locators: values.map(
      ({ locate }) =>
        (pointer) =>
          locate(pointer),
    ),
    faults,
  };
}

/** Parses one action in JSON or YAML. Returns null for the action if there are faults. */
export function parseSampleAction(text: string, file: string): { action: SampleAction | null; faults: TextFault[] } {
  const { values, faults } = readFile(text, file, (value) => findSchemaFaults(actionCheck, SampleActionSchema, value));
  if (faults.length === 0 && values.length !== 1)
    faults.push({ file, line: 1, column: 1, message: `expected one action; got ${values.length}` });
  return { action: faults.length === 0 ? (values[0]?.value as unknown as SampleAction) : null, faults };
}

/** Validates a policy that was sent as JSON. Returns its faults. */
export function validatePolicyDocument(value: unknown): ValueFault[] {
  const faults = findSchemaFaults(policyCheck, PolicySchema, value);
  if (faults.length >= MAX_FAULTS) return faults;
  // Check well-formed rules and limits even if other rules or limits are malformed, to report all faults at once.
  const { rules, limits = [], results = [] } = (value ?? {}) as Record<"rules" | "limits" | "results", unknown>;
  if (
    !Array.isArray(rules) ||
    !Array.isArray(limits) ||
    !Array.isArray(results) ||
    faults.some(({ pointer }) => pointer === "/rules" || pointer === "/limits" || pointer === "/results")
  )
    return faults;
  const misshapen = new Set(faults.map(({ pointer }) => /^\/(?:rules|limits|results)\/\d+/.exec(pointer)?.[0]));
  const { tools, case_sensitive = false } = value as Partial<PolicyDocument>;
  const validTools = faults.some(({ pointer }) => pointer.startsWith("/tools")) ? undefined : tools;
  const schemas = { ...(validTools === undefined ? {} : { tools: validTools }), case_sensitive };
  const dataFaults = findDataFaults((value as Partial<PolicyDocument>).data);
  if (dataFaults.length > 0 || faults.some(({ pointer }) => /^\/(let|data)/.test(pointer)))
    return [...faults, ...dataFaults];
  const {
    named,
    types,
    faults: namedFaults,
  } = checkNamedValues(
    value as PolicyDocument,
    !faults.some(({ pointer }) => /^\/(history|let|rules|policy)/.test(pointer)),
    !faults.some(({ pointer }) => /^\/(facts|attributes)/.test(pointer)),
  );
  const shaped = {
    rules: rules.map((rule: unknown, i) => (misshapen.has(`/rules/${i}`) ? {} : rule)) as RuleDocument[],
    limits: limits.map((limit: unknown, i) => (misshapen.has(`/limits/${i}`) ? {} : limit)) as LimitDocument[],
    results: results.map((rule: unknown, i) => (misshapen.has(`/results/${i}`) ? {} : rule)) as ResultRuleDocument[],
    ...(faults.some(({ pointer }) => pointer.startsWith("/applies_to")) ? {} : appliesTo(value)),
  };
  return [
    ...faults,
    ...findPatternFaults(shaped).map(({ pointer, message }) => ({
      pointer,
      detail: message,
      kind: "pattern" as const,
    })),
    ...namedFaults,
    ...(faults.length === 0 ? findSuggestedFaults(value as PolicyDocument) : []),
    ...findSemanticFaults(
      rules as RuleDocument[],
      limits as LimitDocument[],
      results as ResultRuleDocument[],
      misshapen,
      {
        ...schemas,
        named,
        types,
      },
    ),
  ];
}

/** Returns the faults of the result rules that have the right shape. */
function findResultFaults(
  results: readonly ResultRuleDocument[],
  except: ReadonlySet<string | undefined>,
  names: Set<string>,
): ValueFault[] {
  return results.flatMap((rule, i): ValueFault[] => {
    const at = `/results/${i}`;
    if (except.has(at)) return [];
    const isRepeated = names.has(rule.name);
    names.add(rule.name);
    return [
      ...(isRepeated
        ? [
            {
              pointer: `${at}/name`,
              kind: "repeated-name" as const,
              detail: `the name "${rule.name}" appears twice in this policy; give each rule a name of its own`,
            },
          ]
        : []),
      ...compileResultRule(rule, false).faults.map(({ pointer, message, ...offset }) => ({
        pointer: `${at}${pointer}`,
        detail: message,
        ...offset,
        ...(pointer === "/match/when" ? { kind: "condition" as const } : {}),
      })),
    ];
  });
}

/**
 * Compiles the named values, the history and the facts, and determines their types. Conditions can read a declaration
 * with faults, so that one mistake causes only one message.
 * @param isShaped whether the history can be compiled
 * @param hasShapedFacts whether the facts and attributes can be compiled
 */
function checkNamedValues(
  document: PolicyDocument,
  isShaped: boolean,
  hasShapedFacts: boolean,
): NamedScope & { faults: ValueFault[] } {
  const { history, facts, attributes, ...others } = document;
  const declared = {
    ...others,
    ...(isShaped && history !== undefined ? { history } : {}),
    ...(hasShapedFacts && facts !== undefined ? { facts } : {}),
    ...(hasShapedFacts && attributes !== undefined ? { attributes } : {}),
  };
  const { named: compiled, faults: inputFaults } = compileInputs(declared);
  const unshaped = [
    ...(isShaped || history === undefined ? [] : [HISTORY_VARIABLE]),
    ...(hasShapedFacts ? [] : Object.keys(facts ?? {}).map(factVariable)),
  ];
  const named = { ...compiled, names: [...compiled.names, ...unshaped] };
  // Infer types only without faults, because type inference follows references, which could be circular.
  const { types, faults } =
    inputFaults.length > 0
      ? { types: new Map(named.names.map((name) => [name, DYN])), faults: inputFaults }
      : inferNamedTypes(declared, named);
  const typeFaults = inputFaults.length > 0 || !hasShapedFacts ? [] : findFactFaults(document.facts ?? {}, types);
  return {
    named,
    types,
    faults: [...faults, ...typeFaults].map(({ message, offset, ...fault }) => ({
      ...fault,
      ...(offset === undefined ? {} : { offset }),
      kind: "condition",
      detail: message,
    })),
  };
}

function appliesTo(value: unknown): Pick<PolicyDocument, "applies_to"> {
  const { applies_to } = value as PolicyDocument;
  return applies_to === undefined ? {} : { applies_to };
}

const KINDS: Readonly<Partial<Record<ValueErrorType, FaultKind>>> = {
  [ValueErrorType.ObjectAdditionalProperties]: "unknown-key",
  [ValueErrorType.ObjectRequiredProperty]: "missing-key",
};

function findSchemaFaults(check: TypeCheck<TSchema>, schema: TSchema, value: unknown): ValueFault[] {
  if (check.Check(value)) return [];
  const faults = new Map<string, ValueFault>();
  for (const error of check.Errors(value)) {
    if (faults.size >= MAX_FAULTS) break;
    if (faults.has(error.path)) continue;
    faults.set(error.path, {
      pointer: error.path,
      detail: `${explainFault(error, siblingNames(schema, error.path))}${effectHint(error)}`,
      kind: KINDS[error.type] ?? "wrong-value",
      key: error.type === ValueErrorType.ObjectAdditionalProperties,
    });
  }
  // If a key is mistyped, do not also report it as missing.
  for (const { pointer, kind } of faults.values()) {
    if (kind !== "unknown-key") continue;
    const suggestion = findSimilarName(lastPointerSegment(pointer), siblingNames(schema, pointer));
    const missing = `${pointer.slice(0, pointer.lastIndexOf("/"))}/${suggestion ?? ""}`;
    if (suggestion !== null && faults.get(missing)?.kind === "missing-key") faults.delete(missing);
  }
  return [...faults.values()];
}

/** Names that other policy languages use for the effects. */
const EFFECT_SYNONYMS: Readonly<Record<string, string>> = {
  permit: "allow",
  accept: "allow",
  approve: "require_approval",
  ask: "require_approval",
  approval: "require_approval",
  confirm: "require_approval",
  block: "deny",
  forbid: "deny",
  refuse: "deny",
  reject: "deny",
};

const EFFECTS: readonly string[] = ["allow", "deny", "require_approval"];

function effectHint({ path, value }: { path: string; value: unknown }): string {
  if (!path.endsWith("/effect") || typeof value !== "string") return "";
  const suggestion = EFFECT_SYNONYMS[value.toLowerCase()] ?? findSimilarName(value, EFFECTS);
  return suggestion === null ? "" : `; did you mean "${suggestion}"?`;
}

/** Finds faults that the schema cannot detect. */
function findSemanticFaults(
  rules: readonly RuleDocument[],
  limits: readonly LimitDocument[],
  results: readonly ResultRuleDocument[],
  except: ReadonlySet<string | undefined>,
  schemas: ExpressionScope,
): ValueFault[] {
  const faults: ValueFault[] = [];
  const names = new Set<string>();
  if (rules.length === 0 && limits.length === 0 && results.length === 0)
    faults.push({ pointer: "/rules", detail: "a policy without limits and results needs at least one rule" });
  for (const [i, limit] of limits.entries())
    if (!except.has(`/limits/${i}`))
      faults.push(
        ...findLimitFaults(limit, { ...schemas, named: namedValuesForLimits(schemas.named) }).map((fault) => ({
          ...fault,
          pointer: `/limits/${i}${fault.pointer}`,
        })),
      );
  const named = [
    ...rules.map((rule, i) => ({ rule, kind: "rule" as const, at: `/rules/${i}` })),
    ...limits.map((limit, i) => ({
      rule: { ...limit, effect: limit.effect ?? "deny" },
      kind: "limit" as const,
      at: `/limits/${i}`,
    })),
  ];
  for (const { rule, kind, at } of named) {
    if (except.has(at)) continue;
    if (names.has(rule.name))
      faults.push({
        pointer: `${at}/name`,
        kind: "repeated-name",
        detail: `the ${kind} "${rule.name}" appears twice in this policy; give each rule and each limit a name of its own`,
      });
    names.add(rule.name);
    if (rule.approval !== undefined && rule.effect !== "require_approval") {
      faults.push({
        pointer: `${at}/approval`,
        detail: `approval has no meaning with the effect "${rule.effect}"; remove it or use require_approval`,
        key: true,
      });
    }
    if (rule.approval !== undefined)
      faults.push(
        ...[
          ...findApproverFaults(rule.approval),
          ...findGrantFaults(rule, kind),
          ...findReviewerFaults(rule, kind),
        ].map((fault) => ({
          ...fault,
          pointer: `${at}/approval${fault.pointer}`,
        })),
      );
    if (kind === "rule")
      faults.push(
        ...findObligationFaults(rule, inferParamsType(rule, schemas)).map((fault) => ({
          ...fault,
          pointer: `${at}/obligations${fault.pointer}`,
        })),
      );
    if ("effect_key" in rule && rule.effect_key !== undefined) {
      const compiled = parseEffectKey(rule.effect_key);
      const key = typeof rule.effect_key === "string" ? rule.effect_key : rule.effect_key.key;
      const detail = typeof compiled === "string" ? compiled : findPreviewFault(key, inferParamsType(rule, schemas));
      if (detail !== null) faults.push({ pointer: `${at}/effect_key`, detail });
    }
    const { pins = [] } = rule.approval ?? {};
    if (pins.length > 0 && kind === "limit")
      faults.push({
        pointer: `${at}/approval/pins`,
        detail: "a limit reads no facts, so it cannot pin them; pin them in a rule",
      });
    if (pins.length > 0 && rule.approval?.grants !== undefined)
      faults.push({
        pointer: `${at}/approval/pins`,
        detail: "no one sees the pinned facts of an action that a grant covers; remove pins or grants",
      });
    if (kind === "rule")
      for (const [i, pin] of pins.entries())
        faults.push(...findExpressionFaults(pin, "value", `${at}/approval/pins/${i}`, rule, schemas));
    const preview = rule.approval?.preview;
    const previewFault = preview === undefined ? null : findPreviewFault(preview, inferParamsType(rule, schemas));
    if (previewFault !== null) faults.push({ pointer: `${at}/approval/preview`, detail: previewFault });
    for (const name of ["expires_in", "valid_for", "rejection_holds"] as const) {
      const text = rule.approval?.[name];
      if (text === undefined || (name === "rejection_holds" && text === "none")) continue;
      const { least, most, between } = TERMS[name];
      const ms = parseDuration(text);
      const pointer = `${at}/approval/${name}`;
      if (ms === null) faults.push({ pointer, detail: `"${text}" is not a duration such as 30m, 1h or 7d` });
      else if (ms < least || ms > most) faults.push({ pointer, detail: `"${text}" is not between ${between}` });
    }
    if (rule.when !== undefined) {
      const scope = kind === "limit" ? { ...schemas, named: namedValuesForLimits(schemas.named) } : schemas;
      faults.push(...findExpressionFaults(rule.when, "condition", `${at}/when`, rule, scope));
    }
  }
  faults.push(...findResultFaults(results, except, names));
  return faults;
}

interface NamedScope {
  named: NamedValues;
  types: ReadonlyMap<string, StaticType>;
}

/** The names that the expressions of a policy can use. */
type ExpressionScope = Pick<PolicyDocument, "tools" | "case_sensitive"> & NamedScope;

/** Checks an expression. Returns at most one fault, so that one mistake causes only one message. */
function findExpressionFaults(
  source: string,
  purpose: ExpressionPurpose,
  pointer: string,
  rule: Pick<RuleDocument, "tool" | "operation">,
  scope: ExpressionScope,
): ValueFault[] {
  const { named, types } = scope;
  const compiled =
    purpose === "condition"
      ? compileCondition(source, named)
      : compileExpression(source, `expression of ${purpose}`, named);
  const fault = compiled.ok ? findTypeFault(source, purpose, inferParamsType(rule, scope), types) : compiled;
  return fault === null ? [] : [{ pointer, kind: "condition", detail: fault.message, offset: fault.offset }];
}

function findLimitFaults(limit: LimitDocument, schemas: ExpressionScope): ValueFault[] {
  const faults: ValueFault[] = [];
  if ((limit.count === undefined) === (limit.sum === undefined))
    faults.push({ pointer: "", detail: `the limit "${limit.name}" needs either count, or sum with at_most` });
  else if ((limit.sum === undefined) !== (limit.at_most === undefined))
    faults.push({
      pointer: limit.sum === undefined ? "/at_most" : "/sum",
      detail: "sum and at_most go together",
      key: true,
    });
  const window = parseWindow(limit.window, limit.time_zone);
  if (typeof window === "string") faults.push({ pointer: "/window", detail: window });
  const usage = limit.sum === undefined ? null : readUsageName(limit.sum);
  if ((usage === null) !== (limit.reserve === undefined))
    faults.push(
      usage === null
        ? { pointer: "/reserve", detail: "reserve belongs to a sum of usage, such as usage.cost_usd", key: true }
        : {
            pointer: "/sum",
            detail: `the usage is only known after the action; add reserve, the amount that counts until then and if no report comes`,
          },
    );
  for (const name of ["per", "sum"] as const) {
    const source = limit[name];
    if (source === undefined || (name === "per" && source === "key") || (name === "sum" && usage !== null)) continue;
    faults.push(...findExpressionFaults(source, name, `/${name}`, limit, schemas));
  }
  return faults;
}

function readFile(
  text: string,
  file: string,
  validate: (value: JsonValue, yaml: YamlValue) => ValueFault[],
): { values: YamlValue[]; faults: TextFault[] } {
  if (text.length > MAX_FILE_LENGTH)
    return {
      values: [],
      faults: [
        {
          kind: "unreadable-file",
          file,
          line: null,
          column: null,
          message: `the file has more than ${MAX_FILE_LENGTH} characters`,
        },
      ],
    };
  const { values, faults: unreadable } = readYaml(text);
  const faults: TextFault[] = unreadable.map(({ line, column, message }) => ({
    kind: "yaml-syntax",
    file,
    line: line ?? null,
    column: column ?? null,
    message,
  }));
  for (const yaml of values) {
    for (const { pointer, detail, kind = "wrong-value", ...at } of validate(yaml.value, yaml).slice(0, MAX_FAULTS)) {
      faults.push({
        kind,
        file,
        ...yaml.locate(pointer, at),
        message: pointer === "" ? detail : `${pointer.slice(1).replaceAll("/", ".")}: ${detail}`,
      });
    }
  }
  faults.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
  return { values: faults.length === 0 ? values : [], faults: faults.slice(0, MAX_FAULTS) };
}
