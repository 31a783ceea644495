/**
 * Finds expressions that can never be evaluated: `tool > 5`, `principal.ownr`, `duration("30d")`. Without this check,
 * such an expression would deny every request at run time. Accepts expressions whose types are unknown, such as
 * `params.amount` of a tool without a schema.
 */
import { unparse } from "@bufbuild/cel";
import { ACTION_STATUSES } from "../../actions.ts";
import { findSimilarName } from "../../similar-name.ts";
import { findFunctions, MAX_STEPS } from "../condition/cel.ts";
import { resultPath } from "../condition/cel-history.ts";
import { CelFailure } from "../condition/cel-failure.ts";
import { parseFormat, type FormatClause } from "../condition/cel-format.ts";
import { Meter, runMetered } from "../condition/cel-meter.ts";
import { parseExpression } from "../condition/cel-parse.ts";
import { planExpression } from "../condition/cel-plan.ts";
import { CALENDAR_METHODS, wallClock } from "../condition/cel-time.ts";
import {
  childrenOf,
  isOptionalMacro,
  OPTIONAL_INDEX,
  OPTIONAL_MACROS,
  OPTIONAL_SELECT,
  type CallExpr,
  type ComprehensionExpr,
  type Expr,
  type ListExpr,
  type ParsedExpression,
} from "../condition/cel-tree.ts";
import { findRequestPath } from "../condition/condition-members.ts";
import { ShapeFault, TYPE_NAMES } from "../condition/condition-shape.ts";
import {
  ANY_MAP,
  BOOL,
  canBeEqual,
  describeType,
  DYN,
  unionMembers,
  STRING,
  createUnion,
  unwrapOptional,
  type ListType,
  type MapType,
  type ScalarName,
  type ScalarType,
  type StaticType,
} from "./static-types.ts";

type Scope = ReadonlyMap<string, StaticType>;
type CelTypeName = ReturnType<typeof findFunctions>[number]["result"];

const TEXT_OR_NULL = createUnion([STRING, { kind: "null" }]);
const TEXTS: ListType = { kind: "list", element: STRING };

/**
 * Returns the type of `principal`.
 * @param claims the type of the principal's claims
 */
export function principalType(claims: StaticType): MapType {
  return {
    kind: "map",
    fields: new Map<string, StaticType>([
      ["key_id", STRING],
      ["name", STRING],
      ["agent_id", TEXT_OR_NULL],
      ["owner", TEXT_OR_NULL],
      ["claims", claims],
      ["groups", TEXTS],
      ["roles", TEXTS],
    ]),
    rest: null,
  };
}

/** Types of the variables of every condition. */
export const VARIABLE_TYPES: ReadonlyMap<string, StaticType> = new Map<string, StaticType>([
  ["agent", STRING],
  ["agent_groups", TEXTS],
  ["agent_metadata", ANY_MAP],
  ["tool", STRING],
  ["operation", STRING],
  ["params", ANY_MAP],
  ["context", ANY_MAP],
  ["principal", principalType(ANY_MAP)],
  ["session", { kind: "map", fields: new Map<string, StaticType>([["labels", TEXTS]]), rest: null }],
  ["now", { kind: "timestamp" }],
]);

/** Returns the type of `history`, a list of past actions. */
export const historyType = ({ keep = [] }: { keep?: readonly string[] }): ListType => ({
  kind: "list",
  element: {
    kind: "map",
    fields: new Map<string, StaticType>([
      ["agent", STRING],
      ["at", { kind: "timestamp" }],
      ["context", ANY_MAP],
      ["may_have_run", BOOL],
      ["operation", STRING],
      ["params", ANY_MAP],
      ...(keep.length === 0 ? [] : [["result", typeOfMembers(keep.map(resultPath))] as const]),
      ["status", { kind: "string", values: ACTION_STATUSES }],
      ["tool", STRING],
    ]),
    rest: null,
  },
});

/** Returns the type of an object that has only these members. */
function typeOfMembers(paths: readonly (readonly string[])[]): StaticType {
  if (paths.some((path) => path.length === 0)) return DYN;
  const names = [...new Set(paths.map(([name]) => name as string))];
  const below = (name: string): string[][] => paths.filter(([first]) => first === name).map(([, ...rest]) => rest);
  return { kind: "map", fields: new Map(names.map((name) => [name, typeOfMembers(below(name))])), rest: null };
}

/** The use of an expression, which determines the types that are accepted. `value`: an expression in `let`. */
export type ExpressionPurpose = "condition" | "per" | "sum" | "value";

const ACCEPTED_TYPES: Readonly<
  Record<Exclude<ExpressionPurpose, "value">, { kinds: readonly ScalarName[]; noun: string }>
> = {
  condition: { kinds: ["bool"], noun: "true or false" },
  per: { kinds: ["string", "int", "uint", "double", "bool"], noun: "a string, a number or a bool" },
  sum: { kinds: ["int", "uint", "double"], noun: "a number" },
};

/**
 * Returns the first type fault of an expression; null if there is none. The expression must already have passed the
 * syntax check.
 * @param params the type of `params`, from the schemas of the tools that the rule matches
 * @param named the types of the policy's named values
 * @example findTypeFault("tool > 5", "condition") // { message: '">" cannot compare a string and an int …', offset: 4 }
 */
export function findTypeFault(
  source: string,
  purpose: ExpressionPurpose,
  params: StaticType = ANY_MAP,
  named: ReadonlyMap<string, StaticType> = new Map(),
): TypeFault | null {
  const inferred = inferType(source, purpose, new Map([...VARIABLE_TYPES, ["params", params], ...named]));
  return "message" in inferred ? inferred : null;
}

/** A type fault. `offset` is in UTF-16 code units of the source. */
interface TypeFault {
  message: string;
  offset: number;
}

/**
 * Returns the type of an expression, or its first fault. The expression must already have passed the syntax check.
 * @param scope the types of all variables
 */
export function inferType(
  source: string,
  purpose: ExpressionPurpose,
  scope: ReadonlyMap<string, StaticType>,
): { type: StaticType } | TypeFault {
  const parsed = parseExpression(source);
  try {
    const checker = new TypeChecker(parsed);
    const type = checker.infer(parsed.expr, scope);
    checker.checkConstants(parsed.expr);
    if (purpose === "value") return { type };
    const { kinds, noun } = ACCEPTED_TYPES[purpose];
    const members = unionMembers(type);
    if (members.length > 0 && !members.some(({ kind }) => kind === "dyn" || kinds.includes(kind as ScalarName)))
      checker.fail(parsed.expr, `the expression is ${describeType(type)}; it must be ${noun}${conversionHint([type])}`);
    return { type };
  } catch (error) {
    if (error instanceof ShapeFault) return { message: error.message, offset: error.offset };
    throw error;
  }
}

class TypeChecker {
  private readonly parsed: ParsedExpression;

  constructor(parsed: ParsedExpression) {
    this.parsed = parsed;
  }

  fail(node: Expr, message: string): never {
    throw new ShapeFault(message, this.parsed.sourceInfo?.positions[node.id.toString()] ?? 0);
  }

  infer(node: Expr | undefined, scope: Scope): StaticType {
    const kind = node?.exprKind;
    switch (kind?.case) {
      case "constExpr":
        return constantType(kind.value.constantKind);
      case "identExpr": {
        const name = kind.value.name.replace(/^\./, "");
        return scope.get(name) ?? (TYPE_NAMES.includes(name) ? { kind: "type" } : DYN);
      }
      case "selectExpr": {
        const field = this.member(node as Expr, kind.value.operand as Expr, kind.value.field, scope);
        return kind.value.testOnly ? BOOL : field;
      }
      case "callExpr":
        return this.call(node as Expr, kind.value, scope);
      case "listExpr":
        return { kind: "list", element: createUnion(this.elements(kind.value, scope)) };
      case "structExpr":
        for (const entry of kind.value.entries) {
          if (entry.keyKind.case === "mapKey") this.infer(entry.keyKind.value, scope);
          if (entry.optionalEntry) this.optionalValue(entry.value as Expr, scope);
          else this.infer(entry.value, scope);
        }
        return ANY_MAP;
      case "comprehensionExpr":
        return this.comprehension(kind.value, scope);
      default:
        return DYN;
    }
  }

  private elements({ elements, optionalIndices }: ListExpr, scope: Scope): StaticType[] {
    return elements.map((element, i) =>
      optionalIndices.includes(i) ? this.optionalValue(element, scope) : this.infer(element, scope),
    );
  }

  /** Returns the type of the value of an expression that must be optional. */
  private optionalValue(node: Expr, scope: Scope): StaticType {
    const type = this.infer(node, scope);
    const members = unionMembers(type);
    if (members.length > 0 && !members.some(({ kind }) => kind === "optional" || kind === "dyn"))
      this.fail(node, `${this.text(node)} is ${describeType(type)}; it must be optional, such as params.?amount`);
    return unwrapOptional(type).type;
  }

  /**
   * Returns the type of `operand.field`, which is optional if the operand is.
   * @param isMarked `operand.?field`, which is optional
   */
  private member(node: Expr, operand: Expr, field: string, scope: Scope, isMarked = false): StaticType {
    const { type: owner, isOptional } = unwrapOptional(this.infer(operand, scope));
    const type = this.field(node, operand, owner, field);
    return isOptional || isMarked ? { kind: "optional", element: type } : type;
  }

  private field(node: Expr, operand: Expr, owner: StaticType, field: string): StaticType {
    const members = unionMembers(owner);
    // `google.protobuf.Timestamp` is the name of a type, not a member of a value.
    if (members.length === 0 || members.some(({ kind }) => kind === "dyn" || kind === "type")) return DYN;
    const maps = members.filter((member) => member.kind === "map");
    if (maps.length === 0)
      this.fail(node, `${this.text(operand)} is ${describeType(owner)}, which has no fields such as "${field}"`);
    const types = maps.map(({ fields, rest }) => fields.get(field) ?? rest).filter((type) => type !== null);
    if (types.length > 0) return createUnion(types);
    const names = [...new Set(maps.flatMap(({ fields }) => [...fields.keys()]))];
    const suggestion = findSimilarName(field, names);
    const hint =
      suggestion === null ? `; its fields are ${names.join(", ") || "none"}` : `; did you mean "${suggestion}"?`;
    return this.fail(node, `${this.text(operand)} has no field "${field}"${hint}`);
  }

  private call(node: Expr, call: CallExpr, scope: Scope): StaticType {
    const { function: name, target, args } = call;
    const [first, second] = args as [Expr, Expr];
    switch (name) {
      case "_&&_":
      case "_||_":
        for (const side of args)
          this.requireBool(side, scope, `"${operatorOf(name)}" needs true or false on both sides`);
        return BOOL;
      case "@not_strictly_false":
        return BOOL;
      case "_?_:_":
        this.requireBool(first, scope, '"?" needs true or false in front of it');
        return createUnion(args.slice(1).map((arg) => this.infer(arg, scope)));
      case "_[_]":
        return this.index(node, first, second, scope);
      case OPTIONAL_INDEX:
        return this.index(node, first, second, scope, true);
      case OPTIONAL_SELECT:
        return this.member(node, first, textConstant(second) ?? "", scope, true);
      case "_==_":
      case "_!=_":
        this.comparable(node, first, second, scope, name === "_==_" ? "are never equal" : "always differ");
        return BOOL;
      case "@in":
        this.inclusion(node, first, second, scope);
        return BOOL;
      case "_+_": {
        const types = args.map((arg) => this.infer(arg, scope));
        if (types.every(({ kind }) => kind === "list"))
          return { kind: "list", element: createUnion((types as ListType[]).map(({ element }) => element)) };
        return this.overload(node, name, undefined, types);
      }
      default: {
        const owner = target === undefined ? undefined : this.infer(target, scope);
        const types = args.map((arg) => this.infer(arg, scope));
        const declared = this.overload(node, name, owner, types);
        if (name === "format" && target !== undefined) this.format(target, first, scope);
        if (name === "sum" && owner !== undefined) this.summands(node, owner);
        return dependentResult(name, owner, types) ?? declared;
      }
    }
  }

  /** Checks a format that is a literal, and the values of its placeholders if they are a literal list. */
  private format(format: Expr, values: Expr, scope: Scope): void {
    const text = textConstant(format);
    if (text === null) return;
    let clauses: FormatClause[];
    try {
      clauses = parseFormat(text).filter((part) => typeof part !== "string");
    } catch (error) {
      return this.fail(format, (error as Error).message);
    }
    const list = values.exprKind.case === "listExpr" ? values.exprKind.value : null;
    if (list === null || list.optionalIndices.length > 0) return;
    if (list.elements.length !== clauses.length)
      this.fail(
        values,
        `the format has ${clauses.length} ${clauses.length === 1 ? "placeholder" : "placeholders"}, and the list ${list.elements.length} ${list.elements.length === 1 ? "value" : "values"}`,
      );
    for (const [i, { verb }] of clauses.entries()) {
      const element = list.elements[i] as Expr;
      const type = this.infer(element, scope);
      const accepted = FORMAT_KINDS[verb];
      const kinds = unionMembers(type).map(({ kind }) => kind);
      if (
        accepted !== undefined &&
        kinds.length > 0 &&
        !kinds.some((kind) => kind === "dyn" || accepted.includes(kind))
      )
        this.fail(element, `%${verb} does not accept ${describeType(type)}`);
    }
  }

  private summands(node: Expr, list: StaticType): void {
    const elements = unionMembers(list).flatMap((type) => (type.kind === "list" ? unionMembers(type.element) : []));
    if (elements.length > 0 && !elements.some(({ kind }) => kind === "dyn" || isNumber(kind)))
      this.fail(node, `"sum" adds numbers; the elements are ${describeType(createUnion(elements))}`);
  }

  private requireBool(side: Expr, scope: Scope, message: string): void {
    const type = this.infer(side, scope);
    const members = unionMembers(type);
    if (members.length > 0 && !members.some(({ kind }) => kind === "bool" || kind === "dyn"))
      this.fail(side, `${message}; ${this.text(side)} is ${describeType(type)}`);
  }

  /**
   * Returns the type of `operand[key]`.
   * @param isMarked `operand[?key]`
   */
  private index(node: Expr, operand: Expr, key: Expr, scope: Scope, isMarked = false): StaticType {
    const { type: owner, isOptional } = unwrapOptional(this.infer(operand, scope));
    const type = this.element(node, operand, owner, { key, scope });
    return isOptional || isMarked ? { kind: "optional", element: type } : type;
  }

  private element(
    node: Expr,
    operand: Expr,
    owner: StaticType,
    { key, scope }: { key: Expr; scope: Scope },
  ): StaticType {
    const text = textConstant(key);
    const members = unionMembers(owner);
    if (text !== null && members.length > 0 && members.every(({ kind }) => kind === "map"))
      return this.field(node, operand, owner, text);
    const keyType = this.infer(key, scope);
    if (members.some(({ kind }) => kind === "dyn") || members.length === 0) return DYN;
    const indexed = members.filter((member) => member.kind === "list" || member.kind === "map");
    if (indexed.length === 0) this.fail(node, `${this.text(operand)} is ${describeType(owner)}, which has no elements`);
    const fits = unionMembers(keyType).some(
      ({ kind }) =>
        kind === "dyn" || indexed.some((type) => (type.kind === "map" ? kind === "string" : isNumber(kind))),
    );
    if (!fits)
      this.fail(
        node,
        `${this.text(operand)} is ${describeType(owner)}; ${describeType(keyType)} is not an index of it`,
      );
    return createUnion(
      indexed.map((type) =>
        type.kind === "list" ? type.element : createUnion([...type.fields.values(), type.rest ?? DYN]),
      ),
    );
  }

  private comparable(node: Expr, left: Expr, right: Expr, scope: Scope, verb: string): void {
    const [a, b] = [this.infer(left, scope), this.infer(right, scope)];
    const isForeign = isValueOfRequest(left, a) ? isForeignToJson(b) : isValueOfRequest(right, b) && isForeignToJson(a);
    if (isForeign || !canBeEqual(a, b)) this.fail(node, `${this.sides([left, a], [right, b])} ${verb}`);
  }

  private inclusion(node: Expr, value: Expr, range: Expr, scope: Scope): void {
    const [a, b] = [this.infer(value, scope), this.infer(range, scope)];
    const members = unionMembers(b);
    const isNever = isForeignToJson(a) && isValueOfRequest(range, b);
    if (!isNever && (members.length === 0 || members.some(({ kind }) => kind === "dyn" || kind === "map"))) return;
    if (isNever) this.fail(node, `${this.text(value)} is ${describeType(a)}, which ${this.text(range)} never contains`);
    const elements = members.filter((member) => member.kind === "list").map(({ element }) => element);
    if (elements.length === 0) this.fail(node, `"in" needs a list or a map; ${this.text(range)} is ${describeType(b)}`);
    const list = range.exprKind.case === "listExpr" ? range.exprKind.value : null;
    for (const [i, type] of (list === null ? [] : this.elements(list, scope)).entries()) {
      const element = list?.elements[i] as Expr;
      if (!canBeEqual(a, type)) this.fail(element, `${this.sides([value, a], [element, type])} are never equal`);
    }
    if ((list === null || list.elements.length === 0) && !canBeEqual(a, createUnion(elements)))
      this.fail(node, `${this.text(value)} is ${describeType(a)}, which ${this.text(range)} never contains`);
  }

  private overload(node: Expr, name: string, target: StaticType | undefined, args: readonly StaticType[]): StaticType {
    const operands = target === undefined ? args : [target, ...args];
    const fitting = fittingOverloads(name, target !== undefined, operands);
    const verb = /^_[<>]=?_$/.test(name) ? "cannot compare" : "does not accept";
    if (fitting.length === 0)
      this.fail(
        node,
        `"${operatorOf(name)}" ${verb} ${operands.map(describeType).join(" and ")}${conversionHint(operands, name)}`,
      );
    const unfit = numberChoices(operands).find(
      (choice) => fittingOverloads(name, target !== undefined, choice).length === 0,
    );
    if (unfit !== undefined)
      this.fail(
        node,
        `"${operatorOf(name)}" ${verb} ${unfit.map(describeType).join(" and ")}; a value of "type: number" can be an int, such as 5, or a double, such as 5.5: ${numberHint(name)}`,
      );
    return createUnion(fitting.map(({ result }) => fromCelType(result)));
  }

  private comprehension(loop: ComprehensionExpr, scope: Scope): StaticType {
    if (isOptionalMacro(loop)) {
      const value = this.optionalValue(loop.accuInit as Expr, scope);
      const body = this.infer(loop.result, new Map([...scope, [loop.accuVar, value]]));
      if (loop.iterVar === OPTIONAL_MACROS["optMap"]) return { kind: "optional", element: body };
      return { kind: "optional", element: unwrapOptional(body).type };
    }
    const range = this.infer(loop.iterRange, scope);
    const members = unionMembers(range);
    if (members.length > 0 && !members.some(({ kind }) => kind === "dyn" || kind === "list" || kind === "map"))
      this.fail(
        loop.iterRange as Expr,
        `exists, all, map and filter need a list or a map; ${this.text(loop.iterRange as Expr)} is ${describeType(range)}`,
      );
    const element = createUnion(
      members.map((member) => (member.kind === "list" ? member.element : member.kind === "map" ? STRING : DYN)),
    );
    const inner = new Map([...scope, [loop.iterVar, element], [loop.accuVar, this.infer(loop.accuInit, scope)]]);
    this.infer(loop.loopCondition, inner);
    const step = this.infer(loop.loopStep, inner);
    return this.infer(loop.result, new Map([...inner, [loop.accuVar, step]]));
  }

  /** Evaluates calls with constant arguments, and reports calls that fail. */
  checkConstants(node: Expr | undefined): void {
    const kind = node?.exprKind;
    if (node === undefined || kind === undefined) return;
    // If a nested call fails, report only the innermost call, which is the cause.
    for (const child of childrenOf(node)) this.checkConstants(child);
    if (kind.case === "callExpr") {
      const { function: name, target, args } = kind.value;
      const [zone] = args;
      const text = zone === undefined ? null : textConstant(zone);
      if (name in CALENDAR_METHODS && text !== null) this.checkTimeZone(zone as Expr, text);
      if (target === undefined && args.length > 0 && args.every(isConstant)) this.checkConstantCall(node, name);
    }
  }

  private checkConstantCall(node: Expr, name: string): void {
    let failed: boolean;
    try {
      const evaluate = planExpression(node, []);
      failed = runMetered(new Meter(MAX_STEPS), () => evaluate({})) instanceof CelFailure;
    } catch {
      failed = true;
    }
    if (failed) this.fail(node, `${this.text(node)} always fails${CONSTANT_HINTS[name] ?? ""}`);
  }

  private checkTimeZone(node: Expr, zone: string): void {
    try {
      wallClock(0, zone);
    } catch {
      const suggestion = findSimilarName(zone, Intl.supportedValuesOf("timeZone"));
      this.fail(
        node,
        `there is no time zone "${zone}"${suggestion === null ? '; write an IANA name such as "Europe/Berlin", or an offset such as "+02:00"' : `; did you mean "${suggestion}"?`}`,
      );
    }
  }

  /** Returns the expression as CEL source, shortened. */
  private text(expr: Expr): string {
    const source = unparse({ ...this.parsed, expr });
    return source.length > 60 ? `${source.slice(0, 59)}…` : source;
  }

  private sides(left: [Expr, StaticType], right: [Expr, StaticType]): string {
    const [[a, x], [b, y]] = [left, right];
    const values = [x, y].flatMap(unionMembers).find(({ kind }) => kind === "string") as ScalarType | undefined;
    if (x.kind === "string" && y.kind === "string" && values?.values !== undefined) {
      const listed = (x.values?.length ?? 0) > 1 || textConstant(a) === null ? x : y;
      const [named, other] = listed === x ? [a, b] : [b, a];
      return `${this.text(named)}, which is one of ${(listed.values ?? []).map((value) => JSON.stringify(value)).join(", ")}, and ${this.text(other)}`;
    }
    return `${this.text(a)} (${describeType(x)}) and ${this.text(b)} (${describeType(y)})`;
  }
}

const FOREIGN_KINDS: readonly string[] = ["optional", "net.IP", "net.CIDR"];

/** Returns true if no value of the type is JSON: every value is optional, an address or a network. */
function isForeignToJson(type: StaticType): boolean {
  const members = unionMembers(type);
  return members.length > 0 && members.every(({ kind }) => FOREIGN_KINDS.includes(kind));
}

/** Returns true if the expression reads one untyped value of the request, such as `params.amount`, which is JSON. */
function isValueOfRequest(expr: Expr, { kind }: StaticType): boolean {
  return kind === "dyn" && findRequestPath(expr) !== null;
}

/** Kinds of values that the placeholders of a format accept; `%s` accepts all. */
const FORMAT_KINDS: Readonly<Record<string, readonly string[]>> = {
  d: ["int", "uint", "double"],
  f: ["int", "uint", "double"],
  e: ["int", "uint", "double"],
  b: ["int", "uint", "bool"],
  o: ["int", "uint"],
  x: ["int", "uint", "string", "bytes"],
  X: ["int", "uint", "string", "bytes"],
};

const CONSTANT_HINTS: Readonly<Record<string, string>> = {
  duration: '; write hours, minutes or seconds, such as duration("720h") for 30 days',
  timestamp: '; write a time such as timestamp("2026-01-31T09:00:00Z")',
};

/** Returns a hint for the types that are confused most often: strings and numbers. */
function conversionHint(types: readonly StaticType[], name = ""): string {
  const kinds: readonly string[] = types.flatMap(unionMembers).map(({ kind }) => kind);
  const accepted = findFunctions(name).flatMap(({ target }) => target?.name ?? []);
  if ([...kinds, ...accepted].some((kind) => kind.startsWith("net.")))
    return "; convert a string with ip() or cidr(), and an address or a network with string()";
  if (kinds.includes("optional")) return "; read the optional with orValue(), such as params.?amount.orValue(0)";
  if (kinds.includes("string") && kinds.some(isNumber)) return "; convert the text with int() or double()";
  if (kinds.includes("int") && kinds.includes("double")) return "; convert the int with double()";
  return "";
}

/** Returns a hint that tells how to convert a number that can be an int or a double. */
function numberHint(name: string): string {
  if (/^_.*_$/.test(name)) return "convert it with double(), and write constants such as 2.0";
  const takesDouble = findFunctions(name).some((overload) => overload.arguments.some((type) => type.name === "double"));
  return takesDouble ? "convert it with double()" : 'declare "type: integer", or convert it with int()';
}

const isNumber = (kind: string): boolean => kind === "int" || kind === "uint" || kind === "double";

/** Returns `&&` for `_&&_`. */
const operatorOf = (name: string): string => (/^[a-z]/i.test(name) ? name : name.replaceAll(/[_@]/g, ""));

function constantType(constant: { case: string | undefined; value?: unknown }): StaticType {
  switch (constant?.case) {
    case "boolValue":
      return BOOL;
    case "int64Value":
      return { kind: "int" };
    case "uint64Value":
      return { kind: "uint" };
    case "doubleValue":
      return { kind: "double" };
    case "stringValue":
      return { kind: "string", values: [String(constant.value)] };
    case "bytesValue":
      return { kind: "bytes" };
    case "nullValue":
      return { kind: "null" };
    default:
      return DYN;
  }
}

function textConstant({ exprKind }: Expr): string | null {
  if (exprKind.case !== "constExpr" || exprKind.value.constantKind.case !== "stringValue") return null;
  return exprKind.value.constantKind.value;
}

/** Returns true if the expression does not read variables. */
function isConstant(expr: Expr): boolean {
  const { exprKind: kind } = expr;
  if (kind.case === "constExpr") return true;
  return kind.case === "callExpr" && childrenOf(expr).every(isConstant);
}

const SCALARS: Readonly<Record<string, ScalarName>> = {
  null_type: "null",
  "google.protobuf.Timestamp": "timestamp",
  "google.protobuf.Duration": "duration",
};

function fromCelType(type: CelTypeName & { readonly element?: CelTypeName }): StaticType {
  const { kind, name, element } = type;
  if (kind === "list" || name === "optional_type")
    return { kind: kind === "list" ? "list" : "optional", element: element === undefined ? DYN : fromCelType(element) };
  if (kind === "map") return ANY_MAP as MapType;
  return { kind: SCALARS[name] ?? (name as ScalarName) };
}

/**
 * Returns the type of a call to a function whose result has the type of an operand or of its elements; null for other
 * functions.
 */
function dependentResult(name: string, owner: StaticType | undefined, args: readonly StaticType[]): StaticType | null {
  const optional = (element: StaticType): StaticType => ({ kind: "optional", element });
  const [first = DYN] = args;
  const elements = (list: StaticType): StaticType =>
    createUnion(unionMembers(list).map((member) => (member.kind === "list" ? member.element : DYN)));
  switch (name) {
    case "optional.of":
    case "optional.ofNonZeroValue":
      return optional(first);
    case "optional.none":
      return optional(createUnion([]));
    case "optional.unwrap":
      return { kind: "list", element: unwrapOptional(elements(first)).type };
    case "unwrapOpt":
      return { kind: "list", element: unwrapOptional(elements(owner ?? DYN)).type };
    case "value":
      return unwrapOptional(owner ?? DYN).type;
    case "or":
    case "orValue": {
      const value = createUnion([
        unwrapOptional(owner ?? DYN).type,
        name === "or" ? unwrapOptional(first).type : first,
      ]);
      return name === "or" ? optional(value) : value;
    }
    case "sum":
    case "min":
    case "max": {
      if (owner === undefined) return null;
      const element = elements(owner);
      const isEmptyInt = name === "sum" && unionMembers(element).some(({ kind }) => kind === "double");
      // The sum of no doubles is the int 0.
      return isEmptyInt ? createUnion([{ kind: "int" }, element]) : element;
    }
    case "first":
    case "last":
      return owner === undefined ? null : optional(elements(owner));
    default:
      return null;
  }
}

/** Returns the overloads that accept values of these types. The target of a method is the first operand. */
function fittingOverloads(
  name: string,
  isMethod: boolean,
  operands: readonly StaticType[],
): ReturnType<typeof findFunctions> {
  return findFunctions(name).filter(({ target, arguments: args }) => {
    const declared = target === undefined ? args : [target, ...args];
    return (
      (target !== undefined) === isMethod &&
      declared.length === operands.length &&
      declared.every((type, i) => fits(operands[i] as StaticType, type))
    );
  });
}

/** Maximum number of operands of a call that are tried as an int and as a double. */
const MAX_NUMBERS = 4;

/**
 * Returns the operands with every number that can be an int or a double as each of them. JSON does not distinguish 5
 * from 5.0, so a value of `type: number` can be both, and an overload must accept both. Returns an empty list if no
 * operand is such a number.
 */
function numberChoices(operands: readonly StaticType[]): StaticType[][] {
  const isEither = (type: StaticType): boolean => {
    const kinds: readonly string[] = unionMembers(type).map(({ kind }) => kind);
    return kinds.includes("int") && kinds.includes("double");
  };
  const count = operands.filter(isEither).length;
  if (count === 0 || count > MAX_NUMBERS) return [];
  return operands.reduce<StaticType[][]>(
    (choices, operand) =>
      choices.flatMap((choice) =>
        isEither(operand)
          ? (["int", "double"] as const).map((kind): StaticType[] => [...choice, { kind }])
          : [[...choice, operand]],
      ),
    [[]],
  );
}

/** Returns true if a value of `type` can be passed where the library declares `declared`. */
function fits(type: StaticType, declared: CelTypeName): boolean {
  const declaredKind = fromCelType(declared).kind;
  const members = unionMembers(type);
  return (
    declaredKind === "dyn" ||
    members.length === 0 ||
    members.some(({ kind }) => kind === "dyn" || kind === declaredKind)
  );
}
