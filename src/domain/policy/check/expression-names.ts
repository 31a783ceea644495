/** Lists the names that expressions can use, for completion in editors. */
import { FUNCTION_NAMES, listArities } from "../condition/cel.ts";
import { HISTORY_VARIABLE, HISTORY_MACROS } from "../condition/cel-history.ts";
import { OPTIONAL_MACROS } from "../condition/cel-tree.ts";
import { compileNamedValues } from "../condition/named-values.ts";
import { FACTS_PREFIX } from "../condition/source-facts.ts";
import type { PolicyDocument } from "../policy-types.ts";
import { isGlob } from "../compile/glob.ts";
import { inferNamedTypes, type NamingPolicy } from "./named-types.ts";
import { describeType, type StaticType, typeOfJsonSchema, unionMembers } from "./static-types.ts";
import { historyType, VARIABLE_TYPES } from "./type-check.ts";

/** A variable, or a member of a variable such as `principal.owner`, with a phrase for its type. */
export interface NamedType {
  name: string;
  type: string;
}

/** A function, or a method of values. `arity` contains the numbers of arguments that it accepts. */
export interface NamedFunction {
  name: string;
  method: boolean;
  arity: readonly number[];
}

/** A tool and an operation to which policies refer. `operation` is null for all operations. */
export interface NamedTool {
  tool: string;
  operation: string | null;
  /** Declared parameters. */
  params: readonly NamedType[];
}

/** Functions that the parser expands. Their first argument is a name. */
const MACROS: readonly NamedFunction[] = [
  { name: "has", method: false, arity: [1] },
  { name: "cel.bind", method: false, arity: [3] },
  ...["all", "exists", "exists_one", "filter", "map", ...Object.keys(OPTIONAL_MACROS)].map((name) => ({
    name,
    method: true,
    arity: [2],
  })),
  ...Object.keys(HISTORY_MACROS).map((macro) => ({
    name: `${HISTORY_VARIABLE}.${macro}`,
    method: false,
    arity: [macro === "sum" ? 3 : 2],
  })),
];

/** Maximum number of members listed for one variable, so that large data does not fill the response. */
const MAX_MEMBERS = 200;

/** Lists the variables of every expression and their members. */
export function listVariables(): NamedType[] {
  return describeAll(VARIABLE_TYPES);
}

/** Lists the functions, methods and macros of expressions. */
export function listFunctions(): NamedFunction[] {
  return [
    ...MACROS,
    ...FUNCTION_NAMES.flatMap((name) =>
      [false, true].map((method) => ({ name, method, arity: listArities(name, method) })),
    ).filter(({ arity }) => arity.length > 0),
  ];
}

/**
 * Lists the named values of a valid policy (`let`, `data` and `facts`) and their members, and the variables whose
 * members the policy declares (`attributes`). If the policy declares a history, also lists `history` with the members
 * of its actions, such as `history[].status`.
 */
export function listNamedValues(document: NamingPolicy): NamedType[] {
  const { history } = document;
  const facts = Object.keys(document.facts ?? {}).map((name) => ({ policy: "", name, basis: "" }));
  const { named } = compileNamedValues(document, {
    history: history === undefined ? null : { policy: "", basis: "" },
    facts,
  });
  const prefix = facts.length === 0 ? [] : [{ name: FACTS_PREFIX, type: "the facts of the policy" }];
  const types = describeAll(inferNamedTypes(document, named).types).filter(({ name }) => name !== HISTORY_VARIABLE);
  return [...prefix, ...types, ...(history === undefined ? [] : describeHistory(history))];
}

function describeHistory(history: NonNullable<PolicyDocument["history"]>): NamedType[] {
  const { per, window, max } = history;
  const type = `past actions with the same ${per}, ${window}, at most ${max}`;
  return [{ name: HISTORY_VARIABLE, type }, ...describeMembers(`${HISTORY_VARIABLE}[].`, historyType(history).element)];
}

/** Returns the tools that policies declare, or that rules match by an exact name, with the declared parameters. */
export function listTools(documents: readonly PolicyDocument[]): NamedTool[] {
  const found = new Map<string, NamedTool>();
  const add = (tool: string, operation: string | null, params: readonly NamedType[]): void => {
    const key = JSON.stringify([tool, operation]);
    if ((found.get(key)?.params.length ?? -1) < params.length) found.set(key, { tool, operation, params });
  };
  for (const { tools = [], rules, limits = [] } of documents) {
    for (const { tool, operation, params } of tools)
      add(tool, operation ?? null, describeMembers("", typeOfJsonSchema(params)));
    for (const { tool, operation } of [...rules, ...limits])
      for (const name of literals(tool))
        for (const item of operation === undefined ? [null] : literals(operation)) add(name, item, []);
  }
  return [...found.values()].sort((a, b) => (a.tool < b.tool ? -1 : 1));
}

const literals = (names: string | string[] | undefined): string[] =>
  (names === undefined ? [] : [names].flat()).filter((name) => !isGlob(name));

function describeAll(types: ReadonlyMap<string, StaticType>): NamedType[] {
  return [...types].flatMap(([name, type]) => [
    { name, type: describeType(type) },
    ...describeMembers(`${name}.`, type),
  ]);
}

function describeMembers(prefix: string, type: StaticType): NamedType[] {
  return unionMembers(type)
    .flatMap((member) => (member.kind === "map" ? [...member.fields] : []))
    .slice(0, MAX_MEMBERS)
    .map(([name, field]) => ({ name: `${prefix}${name}`, type: describeType(field) }));
}
