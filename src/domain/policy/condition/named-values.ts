/** Compiles the named values of a policy (`let` and `data`), which its conditions read like variables. */
import type { CelInput } from "@bufbuild/cel";
import { findSimilarName } from "../../similar-name.ts";
import type { PolicyDocument } from "../policy-types.ts";
import { HISTORY_VARIABLE } from "./cel-history.ts";
import { FUNCTION_NAMESPACES } from "./cel-parse.ts";
import { toCelValue } from "./cel-values.ts";
import { compileExpression, findNamesRead, type Expression, type NamedValues } from "./condition.ts";
import { VARIABLES } from "./condition-shape.ts";
import { factVariable, isFactVariable } from "./source-facts.ts";

/** A fault in `let`. */
export interface NamedValueFault {
  /** RFC 6901 pointer, relative to the policy. */
  pointer: string;
  message: string;
  /** Whether the key is at fault instead of its value. */
  key?: boolean;
  /** Offset in the string at the pointer, in UTF-16 code units. */
  offset?: number;
}

/** An entry of `let`: a JSON value, or a derived value `{ cel: … }`. */
type LetEntry = NonNullable<PolicyDocument["let"]>[string];

/** Names that CEL reserves, and names of variables that a later version may add. A policy cannot redefine them. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    "in true false null as break const continue else for function if import let loop package namespace return var void " +
    "while int uint double bool string bytes list map null_type type google dyn data history facts session"
  ).split(" "),
);

/** Returns the CEL source of a derived value; null for a constant. */
export function derivedSource(entry: LetEntry): string | null {
  return typeof entry === "object" && entry !== null && !Array.isArray(entry) && typeof entry["cel"] === "string"
    ? entry["cel"]
    : null;
}

/** The inputs that the service reads before it decides: past actions and values of fact sources. */
type NamedInputs = Pick<NamedValues, "history" | "facts">;

const NO_INPUTS: NamedInputs = { history: null, facts: [] };

/**
 * Compiles the named values. Reports every fault. Conditions can still refer to names with faults.
 * @example
 * const { named, faults } = compileNamedValues({ let: { small: 100, gross: { cel: "params.net * 1.19" } } });
 */
export function compileNamedValues(
  { let: entries = {}, data }: Pick<PolicyDocument, "let" | "data">,
  { history, facts }: NamedInputs = NO_INPUTS,
): {
  named: NamedValues;
  faults: NamedValueFault[];
} {
  const names = [
    ...Object.keys(entries),
    ...(data === undefined ? [] : ["data"]),
    ...(history === null ? [] : [HISTORY_VARIABLE]),
    ...facts.map(({ name }) => factVariable(name)),
  ];
  const faults: NamedValueFault[] = [];
  const constants: Record<string, CelInput> = data === undefined ? {} : { data: toCelValue(data) };
  const derived = new Map<string, Expression>();
  const scope: NamedValues = { names, constants: {}, derived: new Map(), history, facts };
  for (const [name, entry] of Object.entries(entries)) {
    const pointer = `/let/${name}`;
    const unusable = findUnusableName(name);
    if (unusable !== null) {
      faults.push({ pointer, key: true, message: unusable });
      continue;
    }
    const source = derivedSource(entry);
    if (source === null) {
      constants[name] = toCelValue(entry);
      const stray = findStrayDerivation(entry);
      if (stray !== null) faults.push({ pointer, message: stray });
      continue;
    }
    const compiled = compileExpression(source, "expression", scope);
    if (compiled.ok) derived.set(name, compiled.expression);
    else faults.push({ pointer: `${pointer}/cel`, message: compiled.message, offset: compiled.offset });
  }
  const cycle = findCycle(new Map([...derived].map(([name, { variables }]) => [name, variables])));
  if (cycle !== null)
    faults.push({
      pointer: `/let/${cycle[0] as string}`,
      message: `is defined by itself (${[...cycle, cycle[0]].join(" → ")}); derive it from the request or from other names`,
    });
  return { named: { names, constants, derived, history, facts }, faults };
}

const isInput = (name: string): boolean => name === HISTORY_VARIABLE || isFactVariable(name);

/** Returns the named values that limits can read. Limits cannot read past actions and facts, which are read later. */
export function namedValuesForLimits(namedValues: NamedValues): NamedValues {
  if (namedValues.history === null && namedValues.facts.length === 0) return namedValues;
  return { ...withoutNames(namedValues, isInput), ...NO_INPUTS };
}

/**
 * Returns the named values that inputs of facts can read: all values except past actions, the current time, and values
 * that depend on these. If an input changed between the read and the decision, the fact would have to be read again.
 */
export function namedValuesForFactInputs(namedValues: NamedValues): NamedValues {
  const derived = [...namedValues.derived.keys()].filter((name) => readsAny(namedValues, name, isTime));
  const reason = (name: string, reason: string): [string, string] => [
    name,
    `an input of a fact cannot read ${name}: ${reason}`,
  ];
  return {
    ...withoutNames(namedValues, (name) => isTime(name) || name === HISTORY_VARIABLE),
    history: null,
    unavailable: new Map([
      reason("now", "it changes between the read of the source and the decision"),
      ...derived.map((name) => reason(name, "it depends on now, which changes between the read and the decision")),
    ]),
  };
}

const isTime = (name: string): boolean => name === "now";

/** Returns true if `isOne` is true for the named value, or for a variable that it reads, directly or indirectly. */
function readsAny(namedValues: NamedValues, name: string, isOne: (variable: string) => boolean): boolean {
  return [...findNamesRead(namedValues, new Set([name]))].some(
    (read) => isOne(read) || [...(namedValues.derived.get(read)?.variables ?? [])].some(isOne),
  );
}

function withoutNames(namedValues: NamedValues, isOne: (variable: string) => boolean): NamedValues {
  const remains = (name: string): boolean => !readsAny(namedValues, name, isOne);
  return {
    ...namedValues,
    names: namedValues.names.filter(remains),
    derived: new Map([...namedValues.derived].filter(([name]) => remains(name))),
  };
}

function findUnusableName(name: string): string | null {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(name))
    return "a name has at most 64 letters, digits and underscores, such as small_refund";
  if ((VARIABLES as readonly string[]).includes(name))
    return `"${name}" is a variable of every condition; choose another name`;
  return RESERVED.has(name) || FUNCTION_NAMESPACES.has(name)
    ? `"${name}" is a word of CEL or reserved; choose another name`
    : null;
}

/**
 * Returns a fault if a constant looks like a misspelt derived value. Conditions would use its source text as the value.
 */
function findStrayDerivation(entry: LetEntry): string | null {
  if (typeof entry !== "object" || entry === null || Array.isArray(entry)) return null;
  const suggestion = Object.keys(entry).length === 1 ? findSimilarName(Object.keys(entry)[0] as string, ["cel"]) : null;
  return "cel" in entry || suggestion !== null
    ? 'a derived value is an expression, such as { cel: "params.amount * 2.0" }; a constant has no member "cel"'
    : null;
}

/**
 * Returns the names of the first circular definition, in order; null if there is none.
 * @param reads the names that each definition reads. Names without a definition are ignored
 */
export function findCycle(reads: ReadonlyMap<string, Iterable<string>>): string[] | null {
  const finished = new Set<string>();
  const visit = (name: string, path: readonly string[]): string[] | null => {
    if (path.includes(name)) return path.slice(path.indexOf(name));
    if (finished.has(name)) return null;
    for (const other of reads.get(name) ?? []) {
      const cycle = reads.has(other) ? visit(other, [...path, name]) : null;
      if (cycle !== null) return cycle;
    }
    finished.add(name);
    return null;
  };
  for (const name of reads.keys()) {
    const cycle = visit(name, []);
    if (cycle !== null) return cycle;
  }
  return null;
}
