/** Determines the types of a policy's named values, and finds values that can never be evaluated. */
import type { Expression, NamedValues } from "../condition/condition.ts";
import { derivedSource, type NamedValueFault } from "../condition/named-values.ts";
import type { PolicyDocument } from "../policy-types.ts";
import { HISTORY_VARIABLE } from "../condition/cel-history.ts";
import { factVariable } from "../condition/source-facts.ts";
import { DYN, typeOfJson, typeOfJsonSchema, type StaticType } from "./static-types.ts";
import { historyType, inferType, principalType, VARIABLE_TYPES } from "./type-check.ts";

/** The members of a policy that define named values. */
export type NamingPolicy = Pick<PolicyDocument, "let" | "data" | "facts" | "attributes" | "history">;

/**
 * Returns the types of constants, derived values, facts and declared attributes. A faulty value gets the type `dyn`, so
 * that one mistake causes only one message.
 * @param namedValues the compiled `entries`, without circular definitions
 */
export function inferNamedTypes(
  { let: entries = {}, data, facts = {}, attributes = {}, history = { per: "", window: "", max: 0 } }: NamingPolicy,
  namedValues: NamedValues,
): { types: ReadonlyMap<string, StaticType>; faults: NamedValueFault[] } {
  const types = new Map<string, StaticType>(data === undefined ? [] : [["data", typeOfJson(data)]]);
  if (namedValues.history !== null) types.set(HISTORY_VARIABLE, historyType(history));
  for (const [name, { schema }] of Object.entries(facts)) types.set(factVariable(name), typeOfJsonSchema(schema));
  const { claims, agent_metadata } = attributes;
  if (claims !== undefined) types.set("principal", principalType(typeOfJsonSchema(claims)));
  if (agent_metadata !== undefined) types.set("agent_metadata", typeOfJsonSchema(agent_metadata));
  const faults: NamedValueFault[] = [];
  const visit = (name: string): void => {
    const entry = entries[name];
    if (entry === undefined || types.has(name)) return;
    types.set(name, DYN);
    const source = derivedSource(entry);
    if (source === null) return void types.set(name, typeOfJson(entry));
    const expression: Expression | undefined = namedValues.derived.get(name);
    if (expression === undefined) return;
    expression.variables.forEach(visit);
    const inferred = inferType(source, "value", new Map([...VARIABLE_TYPES, ...types]));
    if ("type" in inferred) types.set(name, inferred.type);
    else faults.push({ pointer: `/let/${name}/cel`, ...inferred });
  };
  Object.keys(entries).forEach(visit);
  return { types, faults };
}
