/** Compiles the inputs that a policy reads before it decides (`history` and `facts`), and its named values. */
import { canonicalText } from "../../canonical.ts";
import { sha256Hex, utf8 } from "../../hash.ts";
import type { JsonObject, JsonValue } from "../../json.ts";
import { typeOfJsonSchema } from "../check/static-types.ts";
import { compileExpression, findNamesRead, type Expression, type NamedValues } from "../condition/condition.ts";
import {
  compileNamedValues,
  findCycle,
  namedValuesForFactInputs,
  type NamedValueFault,
} from "../condition/named-values.ts";
import { isFactVariable, nameOfFact } from "../condition/source-facts.ts";
import { BASIS_DIGITS } from "../parse/bounds.ts";
import type { FactDocument, PolicyDocument } from "../policy-types.ts";
import { compileHistory, historyKey } from "./compile-history.ts";
import type { CompiledFact, CompiledHistory } from "./compiled-policy.ts";

interface CompiledInputs {
  named: NamedValues;
  /** Null if the policy does not declare a history, or if the declaration has a fault. */
  history: CompiledHistory | null;
  facts: CompiledFact[];
  faults: NamedValueFault[];
}

/**
 * Compiles the inputs and the named values. Faulty inputs and values keep their names, so that one mistake causes only
 * one message.
 */
export function compileInputs(
  definition: Pick<PolicyDocument, "policy" | "case_sensitive" | "history" | "let" | "data" | "facts" | "rules">,
): CompiledInputs {
  const { policy, facts: declared = {} } = definition;
  const history = compileHistory(definition);
  const unnamed = Object.keys(declared).map((name) => ({ policy, name, basis: "" }));
  const { named, faults } = compileNamedValues(definition, {
    history: historyKey(definition, history),
    facts: unnamed,
  });
  const compiled = unnamed.length === 0 ? { facts: [], faults: [] } : compileFacts(definition, declared, named);
  return {
    named: { ...named, facts: compiled.facts.map(({ name, basis }) => ({ policy, name, basis })) },
    history: history !== null && "history" in history ? history.history : null,
    facts: compiled.facts,
    faults: [...faults, ...compiled.faults, ...(history !== null && "faults" in history ? history.faults : [])],
  };
}

/** Compiles the facts: first those that a fact's inputs read, because the digest of a fact depends on theirs. */
function compileFacts(
  definition: Pick<PolicyDocument, "policy" | "let" | "data">,
  declared: NonNullable<PolicyDocument["facts"]>,
  namedValues: NamedValues,
): Pick<CompiledInputs, "facts" | "faults"> {
  const names = namedValuesForFactInputs(namedValues);
  const faults: NamedValueFault[] = [];
  const reads = new Map<string, readonly string[]>();
  for (const [name, document] of Object.entries(declared)) {
    const inputs = compileFactInputs(name, document, names);
    faults.push(...inputs.faults);
    reads.set(name, listFactsRead(names, [...inputs.inputs.values()]));
  }
  const cycle = findCycle(reads);
  if (cycle !== null)
    faults.push({
      pointer: `/facts/${cycle[0] as string}`,
      message: `reads itself (${[...cycle, cycle[0]].join(" → ")}); derive the inputs of one of these facts from the request`,
    });
  const compiled = new Map<string, CompiledFact>();
  const compile = (name: string): CompiledFact => {
    const existing = compiled.get(name);
    if (existing !== undefined) return existing;
    const dependencies = cycle === null ? (reads.get(name) ?? []).map(compile) : [];
    const knownFacts = dependencies.map(({ name, basis }) => ({ policy: definition.policy, name, basis }));
    const fact = compileFact(
      name,
      declared[name] as FactDocument,
      definition,
      { ...names, facts: knownFacts },
      dependencies,
    );
    compiled.set(name, fact);
    return fact;
  };
  return { facts: Object.keys(declared).map(compile), faults };
}

/** Returns the names of the facts that expressions read, directly or through named values. */
function listFactsRead(namedValues: NamedValues, expressions: readonly Expression[]): string[] {
  const read = expressions.flatMap(({ variables }) => [...findNamesRead(namedValues, variables)]);
  return [...new Set(read.filter(isFactVariable).map(nameOfFact))];
}

function compileFactInputs(
  name: string,
  document: FactDocument,
  namedValues: NamedValues,
): { inputs: Map<string, Expression>; faults: NamedValueFault[] } {
  const inputs = new Map<string, Expression>();
  const faults: NamedValueFault[] = [];
  for (const [input, source] of Object.entries(document.with ?? {})) {
    const compiled = compileExpression(source, "input", namedValues);
    if (compiled.ok) inputs.set(input, compiled.expression);
    else faults.push({ pointer: `/facts/${name}/with/${input}`, message: compiled.message, offset: compiled.offset });
  }
  return { inputs, faults };
}

function compileFact(
  name: string,
  document: FactDocument,
  definition: Pick<PolicyDocument, "let" | "data">,
  namedValues: NamedValues,
  dependencies: readonly CompiledFact[],
): CompiledFact {
  const { inputs } = compileFactInputs(name, document, namedValues);
  const values = listValuesRead(definition, namedValues, [...inputs.values()]);
  const basis = [
    document as unknown as JsonValue,
    Object.fromEntries(Object.entries(values).filter(([name]) => !isFactVariable(name))),
    ...dependencies.map(({ basis }) => basis),
  ];
  return {
    name,
    source: document.source,
    inputs,
    dependencies,
    type: typeOfJsonSchema(document.schema),
    basis: sha256Hex(utf8(canonicalText(basis))).slice(0, BASIS_DIGITS),
  };
}

/** Returns the declarations of the named values that expressions read. */
export function listValuesRead(
  { let: entries = {}, data = {} }: Pick<PolicyDocument, "let" | "data">,
  namedValues: NamedValues,
  expressions: readonly (Expression | null)[],
): JsonObject {
  const read = expressions.flatMap((expression) =>
    expression === null ? [] : [...findNamesRead(namedValues, expression.variables)],
  );
  return Object.fromEntries(read.map((name) => [name, name === "data" ? data : (entries[name] ?? null)]));
}
