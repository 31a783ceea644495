/** Validates a condition's syntax tree before it is ever evaluated. */
import { keepsValue } from "../../json.ts";
import { findSimilarName } from "../../similar-name.ts";
import { listArities, FUNCTION_NAMES } from "./cel.ts";
import { HISTORY_VARIABLE, HISTORY_MACROS } from "./cel-history.ts";
import { parseReplacement, PATTERN_FUNCTION_NAMES } from "./cel-pattern-functions.ts";
import { compilePattern, MAX_PATTERN_INSTRUCTIONS, patternSlot, type PatternSlot } from "./cel-patterns.ts";
import { FACTS_PREFIX, isFactVariable } from "./source-facts.ts";
import {
  countNodes,
  isBinding,
  isOptionalMacro,
  type CallExpr,
  type ComprehensionExpr,
  type Expr,
  type ParsedExpression,
  type StructExpr,
} from "./cel-tree.ts";

export const MAX_EXPRESSION_DEPTH = 64;
export const MAX_COMPREHENSION_NESTING = 3;
export const MAX_COMPREHENSIONS = 8;

export const VARIABLES = [
  "agent",
  "agent_groups",
  "agent_metadata",
  "tool",
  "operation",
  "params",
  "context",
  "principal",
  "session",
  "now",
] as const;
export const TYPE_NAMES = [
  "int",
  "uint",
  "double",
  "bool",
  "string",
  "bytes",
  "list",
  "map",
  "null_type",
  "optional_type",
  "type",
  "google",
  "net",
];
const MACROS: Readonly<Record<string, string>> = {
  has: "has(params.amount)",
  bind: "cel.bind(fee, params.amount * 2, fee < 100)",
  exists: "params.items.exists(item, item.price > 100)",
  all: "params.items.all(item, item.price > 100)",
  exists_one: "params.items.exists_one(item, item.price > 100)",
  filter: "params.items.filter(item, item.price > 100)",
  map: "params.items.map(item, item.price)",
  optMap: "params.?amount.optMap(amount, amount * 2)",
  optFlatMap: "params.?order.optFlatMap(order, order.?amount)",
};
const NON_BOOLEAN_RESULTS: Readonly<Record<string, string>> = {
  "_+_": "a sum",
  "_-_": "a difference",
  "_*_": "a product",
  "_/_": "a quotient",
  "_%_": "a remainder",
  "-_": "a number",
  size: "a number",
};

/** A fault with its offset in UTF-16 code units of the source. */
export class ShapeFault extends Error {
  readonly offset: number;
  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

export interface ExpressionShape {
  /** Number of nodes, which is the minimum cost of an evaluation. */
  nodes: number;
  /** Names in the source. Messages can contain these names, because they do not come from the request. */
  names: ReadonlySet<string>;
  /** Variables that the expression reads. */
  variables: ReadonlySet<string>;
  /** The patterns of the expression. */
  patterns: ReadonlySet<PatternSlot>;
}

/**
 * Matches brackets and CEL string literals. Literals are matched so that brackets in them are skipped (language
 * definition, section Syntax).
 */
const TOKENS = /[rR]("""|'''|["'])[^]*?(?:\1|$)|("""|'''|["'])(?:\\[^]|(?!\2)[^])*(?:\2|$)|[([{]|[)\]}]/g;

/**
 * Returns the offset of a bracket that is nested too deeply; -1 if there is none. Call it before parsing, because deep
 * nesting overflows the parser's stack at a depth that differs between runtimes. The parsed tree contains no brackets.
 */
export function findTooDeepBracket(source: string): number {
  let depth = 0;
  for (const { 0: token, index } of source.matchAll(TOKENS)) {
    if (token === "(" || token === "[" || token === "{") depth += 1;
    else if (token === ")" || token === "]" || token === "}") depth -= 1;
    if (depth > MAX_EXPRESSION_DEPTH) return index;
  }
  return -1;
}

/** Matches comments and string literals, so that numbers in them are skipped, and number literals with a fraction or an exponent. */
const DOUBLES =
  /\/\/[^\n]*|[rR][bB]?("""|'''|["'])[^]*?(?:\1|$)|("""|'''|["'])(?:\\[^]|(?!\2)[^])*(?:\2|$)|(?<![\w.])(?<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)/g;

/** Throws ShapeFault for a number literal that its double changes, such as 1e-400. */
export function checkNumbers(source: string): void {
  for (const { groups, index } of source.matchAll(DOUBLES)) {
    const double = groups?.["double"];
    if (double !== undefined && !keepsValue(double))
      throw new ShapeFault(`the number ${double} cannot be represented exactly; write another number`, index);
  }
}

/**
 * Validates the tree. Throws ShapeFault.
 * @param boolean whether the result must be true or false
 * @param unavailable names that the expression cannot read, each with the reason
 */
export function checkShape(
  parsed: ParsedExpression,
  boolean = true,
  variables: readonly string[] = VARIABLES,
  unavailable: ReadonlyMap<string, string> = new Map(),
): ExpressionShape {
  const root = parsed.expr;
  const check = new ShapeCheck(parsed, variables, unavailable);
  const kind = boolean ? findNonBooleanKind(root) : null;
  if (kind !== null) check.fail(root, `the condition is ${kind}; it must be true or false`);
  check.visit(root, { depth: 1, nesting: 0, scope: variables });
  return { nodes: countNodes(root), names: check.names, variables: check.read, patterns: check.patterns };
}

/** Position of a node in the tree. */
interface Place {
  depth: number;
  /** Number of comprehensions that contain the node. */
  nesting: number;
  /** Names that the node can use. */
  scope: readonly string[];
}

class ShapeCheck {
  readonly names = new Set<string>();
  /** Variables that the expression reads. */
  readonly read = new Set<string>();
  readonly patterns = new Set<PatternSlot>();
  private readonly positions: Readonly<Record<string, number>>;
  private readonly variables: readonly string[];
  private readonly unavailable: ReadonlyMap<string, string>;
  private comprehensions = 0;

  constructor(parsed: ParsedExpression, variables: readonly string[], unavailable: ReadonlyMap<string, string>) {
    this.positions = parsed.sourceInfo?.positions ?? {};
    this.variables = variables;
    this.unavailable = unavailable;
  }

  fail(node: Expr, message: string): never {
    throw new ShapeFault(message, this.positions[node.id.toString()] ?? 0);
  }

  visit(node: Expr | undefined, place: Place): void {
    if (node === undefined) return;
    if (place.depth > MAX_EXPRESSION_DEPTH)
      this.fail(node, `the condition nests deeper than ${MAX_EXPRESSION_DEPTH} levels`);
    const inner = { ...place, depth: place.depth + 1 };
    const kind = node.exprKind;
    switch (kind.case) {
      case "constExpr":
        if (kind.value.constantKind.case === "stringValue") this.names.add(kind.value.constantKind.value);
        break;
      case "identExpr":
        this.visitName(node, kind.value.name, place.scope);
        break;
      case "selectExpr":
        this.names.add(kind.value.field);
        this.visit(kind.value.operand, inner);
        break;
      case "callExpr":
        this.visitCall(node, kind.value, inner);
        break;
      case "listExpr":
        for (const element of kind.value.elements) this.visit(element, inner);
        break;
      case "structExpr":
        this.visitMap(node, kind.value, inner);
        break;
      case "comprehensionExpr":
        this.visitComprehension(node, kind.value, inner);
        break;
      default:
        this.fail(node, "this part of CEL is not supported");
    }
  }

  private visitName(node: Expr, written: string, scope: readonly string[]): void {
    const { variables } = this;
    const name = written.replace(/^\./, "");
    if (variables.includes(name)) this.read.add(name);
    if (scope.includes(name) || TYPE_NAMES.includes(name)) return;
    const reason = this.unavailable.get(name);
    if (reason !== undefined) this.fail(node, reason);
    if (name === "data") this.fail(node, "the policy lists no shared data; name it, such as data: [limits]");
    if (name === HISTORY_VARIABLE)
      this.fail(
        node,
        "there is no history here: only the conditions of rules read it, if the policy declares it, such as history: { per: agent, window: 1h, max: 100 }",
      );
    if (name === FACTS_PREFIX)
      this.fail(node, "a fact is read as facts.NAME; test a member of it, such as has(facts.account.status)");
    if (isFactVariable(name)) this.failUnknownFact(node, name);
    const suggestion = findSimilarName(name, variables);
    this.fail(
      node,
      `there is no variable "${name}"${suggestion === null ? `; the variables are ${variables.join(", ")}` : `; did you mean "${suggestion}"?`}`,
    );
  }

  private failUnknownFact(node: Expr, name: string): never {
    const factVariables = this.variables.filter(isFactVariable);
    const suggestion = findSimilarName(name, factVariables);
    const hint =
      suggestion === null
        ? factVariables.length === 0
          ? ""
          : `; it declares ${factVariables.join(", ")}`
        : `; did you mean "${suggestion}"?`;
    return this.fail(
      node,
      factVariables.length === 0
        ? `there is no ${name} here: only the conditions of rules read facts, if the policy declares them under facts`
        : `the policy declares no ${name}${hint}`,
    );
  }

  private visitCall(node: Expr, { function: name, target, args }: CallExpr, inner: Place): void {
    const owner = target?.exprKind.case === "identExpr" ? target.exprKind.value.name : null;
    const historyMacro = owner === HISTORY_VARIABLE ? HISTORY_MACROS[name] : undefined;
    if (historyMacro !== undefined)
      this.fail(node, `"${name}" is not used like this; write for example ${historyMacro}`);
    // Report a misspelt function of a namespace, such as `sets.contain`, unless the owner is a variable of a macro.
    if (owner !== null && !inner.scope.includes(owner) && FUNCTION_NAMES.some((known) => known.startsWith(`${owner}.`)))
      this.checkCall(node, `${owner}.${name}`, false, args);
    else if (/^[a-z]/i.test(name)) this.checkCall(node, name, target !== undefined, args);
    this.visit(target, inner);
    for (const arg of args) this.visit(arg, inner);
  }

  private visitMap(node: Expr, { messageName, entries }: StructExpr, inner: Place): void {
    if (messageName !== "") this.fail(node, `"${messageName}" cannot be built here; use a map, such as {"a": 1}`);
    this.checkKeys(node, entries);
    for (const entry of entries) {
      if (entry.keyKind.case === "mapKey") this.visit(entry.keyKind.value, inner);
      this.visit(entry.value, inner);
    }
  }

  private visitComprehension(node: Expr, loop: ComprehensionExpr, outer: Place): void {
    const bound = { ...outer, scope: [...outer.scope, loop.iterVar, loop.accuVar] };
    if (isBinding(loop) || isOptionalMacro(loop)) {
      this.visit(loop.accuInit, outer);
      this.visit(loop.result, bound);
      return;
    }
    const body = { ...bound, nesting: outer.nesting + 1 };
    if (++this.comprehensions > MAX_COMPREHENSIONS)
      this.fail(node, `the condition has more than ${MAX_COMPREHENSIONS} comprehensions (exists, all, map, filter)`);
    if (body.nesting > MAX_COMPREHENSION_NESTING)
      this.fail(
        node,
        `the condition nests comprehensions (exists, all, map, filter) deeper than ${MAX_COMPREHENSION_NESTING}`,
      );
    this.visit(loop.iterRange, outer);
    this.visit(loop.accuInit, outer);
    this.visit(loop.loopCondition, body);
    this.visit(loop.loopStep, body);
    this.visit(loop.result, bound);
  }

  /**
   * Rejects duplicate numeric keys. In CEL, 0 and 0u are the same key and a duplicate key is an error, but the library
   * treats them as different.
   */
  private checkKeys(node: Expr, entries: StructExpr["entries"]): void {
    const keys = new Set<string>();
    for (const { keyKind } of entries) {
      const kind = keyKind.case === "mapKey" ? keyKind.value.exprKind : undefined;
      const constant = kind?.case === "constExpr" ? kind.value.constantKind : undefined;
      if (constant?.case !== "int64Value" && constant?.case !== "uint64Value") continue;
      const key = String(constant.value);
      if (keys.has(key)) this.fail(node, `the map has the key ${key} twice`);
      keys.add(key);
    }
  }

  private checkCall(node: Expr, name: string, method: boolean, args: readonly Expr[]): void {
    const macro = MACROS[name];
    if (macro !== undefined) this.fail(node, `"${name}" is not used like this; write for example ${macro}`);
    const arities = listArities(name, method);
    if (arities.length === 0) {
      const other = listArities(name, !method).length > 0;
      const suggestion = findSimilarName(name, [...FUNCTION_NAMES, ...Object.keys(MACROS)]);
      this.fail(
        node,
        `there is no ${method ? "method" : "function"} "${name}"${other ? `; it is a ${method ? "function" : "method"}` : suggestion === null ? "" : `; did you mean "${suggestion}"?`}`,
      );
    }
    if (!arities.includes(args.length))
      this.fail(
        node,
        `"${name}" takes ${arities.join(" or ")} ${arities.length === 1 && arities[0] === 1 ? "argument" : "arguments"}, not ${args.length}`,
      );
    if (name === "matches") this.checkPattern(args[0] as Expr, name);
    if (PATTERN_FUNCTION_NAMES.includes(name)) this.checkGroups(name, args);
  }

  /** Checks the pattern and the groups that a function of `regex` uses. */
  private checkGroups(name: string, [, pattern, replacement]: readonly Expr[]): void {
    const groups = this.checkPattern(pattern as Expr, name);
    if (replacement === undefined) {
      if (groups > 1)
        this.fail(
          pattern as Expr,
          `"${name}" returns one group, and the pattern has ${groups}; write the others as (?:…)`,
        );
      return;
    }
    const text = textOf(replacement);
    if (text === null) return;
    try {
      parseReplacement(text, groups);
    } catch (error) {
      this.fail(replacement, `the replacement is invalid: ${(error as Error).message}`);
    }
  }

  /**
   * Requires a literal pattern, because a pattern from the request could take seconds to compile and cannot be checked
   * here. Returns the number of its groups.
   */
  private checkPattern(arg: Expr, name: string): number {
    const source = textOf(arg);
    if (source === null)
      return this.fail(arg, `the pattern of "${name}" must be a text in the condition itself, such as "^[a-z]+$"`);
    this.patterns.add(patternSlot(source));
    let pattern: ReturnType<typeof compilePattern>;
    try {
      pattern = compilePattern(source);
    } catch (error) {
      return this.fail(
        arg,
        `the pattern is not an RE2 regular expression: ${error instanceof Error ? error.message.replace(/^error parsing regexp: /, "") : "it cannot be read"}`,
      );
    }
    const { size, regex } = pattern;
    if (size > MAX_PATTERN_INSTRUCTIONS)
      this.fail(
        arg,
        `the pattern compiles to ${size} instructions, at most ${MAX_PATTERN_INSTRUCTIONS} are allowed; use smaller repetitions`,
      );
    return regex.groupCount();
  }
}

/** Returns the text of a literal, or null. */
function textOf({ exprKind }: Expr): string | null {
  const constant = exprKind.case === "constExpr" ? exprKind.value.constantKind : null;
  return constant?.case === "stringValue" ? constant.value : null;
}

function findNonBooleanKind({ exprKind }: Expr): string | null {
  if (exprKind.case === "constExpr") return exprKind.value.constantKind.case === "boolValue" ? null : "a constant";
  if (exprKind.case === "listExpr") return "a list";
  if (exprKind.case === "structExpr") return "a map";
  if (exprKind.case === "callExpr") return NON_BOOLEAN_RESULTS[exprKind.value.function] ?? null;
  return null;
}
