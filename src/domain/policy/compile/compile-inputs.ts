/** Compiles the inputs that a policy reads before it decides (`history` and `facts`), and its named values. */
import { canonicalText } from "../../canonical.ts";
import { sha256Hex, utf8 } from "../../hash.ts";
import type { JsonObject, JsonValue } from "../../json.ts";
import { typeOfJsonSchema } from "../check/static-types.ts";
import { compileExpression, findNamesRead, type Expression, type NamedValues } from "../condition/condition.ts";
import { compileNamedValues, namedValuesForFactInputs, type NamedValueFault } from "../condition/named-values.ts";
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
  const facts: CompiledFact[] = [];
  if (unnamed.length > 0) {
    const inputNames = namedValuesForFactInputs(named);
    for (const [name, document] of Object.entries(declared)) {
      const compiled = compileFact(name, document, definition, inputNames);
      faults.push(...compiled.faults);
      facts.push(compiled.fact);
    }
  }
  return {
    named: { ...named, facts: facts.map(({ name, basis }) => ({ policy, name, basis })) },
    history: history !== null && "history" in history ? history.history : null,
    facts,
    faults: [...faults, ...(history !== null && "faults" in history ? history.faults : [])],
  };
}

function compileFact(
  name: string,
  document: FactDocument,
  definition: Pick<PolicyDocument, "let" | "data">,
  named: NamedValues,
): { fact: CompiledFact; faults: NamedValueFault[] } {
  const inputs = new Map<string, Expression>();
  const faults: NamedValueFault[] = [];
  for (const [input, source] of Object.entries(document.with ?? {})) {
    const compiled = compileExpression(source, "input", named);
    if (compiled.ok) inputs.set(input, compiled.expression);
    else faults.push({ pointer: `/facts/${name}/with/${input}`, message: compiled.message, offset: compiled.offset });
  }
  const basis = [document as unknown as JsonValue, listValuesRead(definition, named, [...inputs.values()])];
  return {
    fact: {
      name,
      source: document.source,
      inputs,
      type: typeOfJsonSchema(document.schema),
      basis: sha256Hex(utf8(canonicalText(basis))).slice(0, BASIS_DIGITS),
    },
    faults,
  };
}

/** Returns the declarations of the named values that expressions read. */
export function listValuesRead(
  { let: entries = {}, data = {} }: Pick<PolicyDocument, "let" | "data">,
  named: NamedValues,
  expressions: readonly (Expression | null)[],
): JsonObject {
  const read = expressions.flatMap((expression) =>
    expression === null ? [] : [...findNamesRead(named, expression.variables)],
  );
  return Object.fromEntries(read.map((name) => [name, name === "data" ? data : (entries[name] ?? null)]));
}
