/**
 * Plans the evaluation of a syntax tree: each node becomes a function of the variables. Names, overloads and the cost
 * of comprehensions are determined once for each policy instead of once for each evaluation.
 *
 * Errors are values (CelFailure). A plan throws if the steps of its meter run out, or if it compares an optional with
 * another value; see `equalValues`.
 */
import { celMap, celUint, isCelMap, type CelInput } from "@bufbuild/cel";
import { findOverloads, findCelType } from "./cel.ts";
import { hasMember, readElement, readMember, readOptionalElement, readOptionalMember, toMapKey } from "./cel-access.ts";
import { CelFailure } from "./cel-failure.ts";
import { ANY_KIND, kindOf, KIND_COUNT, nameOfKind } from "./cel-kinds.ts";
import { equalValues, toCelList } from "./cel-lists.ts";
import { chargeSteps, type Overload } from "./cel-meter.ts";
import {
  countNodes,
  isOptionalMacro,
  OPTIONAL_INDEX,
  OPTIONAL_MACROS,
  OPTIONAL_SELECT,
  type CallExpr,
  type ComprehensionExpr,
  type Constant,
  type Expr,
  type ListExpr,
  type SelectExpr,
  type StructExpr,
} from "./cel-tree.ts";
import { CelOptional, isList, OPTIONAL_NONE } from "./cel-values.ts";

/** The value of each variable. */
export type Bindings = Record<string, CelInput>;

interface Frame {
  readonly bindings: Bindings;
  /** Values of the variables of comprehensions, indexed by slot. */
  readonly locals: unknown[];
}

/** Evaluates one node. */
type Step = (frame: Frame) => unknown;

/** Names of the variables of the enclosing comprehensions. The index of a name is its slot. */
type Scope = readonly string[];

const UNRESOLVED = new CelFailure("unresolved attribute");

/**
 * Returns a function that evaluates an expression with values for its variables. The result is a CelFailure if the
 * evaluation fails. Call it inside `runMetered`.
 * @param variables the names of the variables in the bindings
 * @example planExpression(parseExpression("params.amount > 5").expr, VARIABLES)({ params: toCelValue({ amount: 7 }) }) // true
 */
export function planExpression(expr: Expr, variables: readonly string[]): (bindings: Bindings) => unknown {
  const step = new Planner(variables).plan(expr, []);
  return (bindings) => step({ bindings, locals: [] });
}

class Planner {
  private readonly variables: ReadonlySet<string>;

  constructor(variables: readonly string[]) {
    this.variables = new Set(variables);
  }

  plan(expr: Expr | undefined, scope: Scope): Step {
    const kind = expr?.exprKind;
    switch (kind?.case) {
      case "constExpr":
        return constant(valueOfConstant(kind.value.constantKind));
      case "identExpr":
        return this.planName(nameOf(kind.value.name), scope);
      case "selectExpr":
        return this.planSelect(expr as Expr, kind.value, scope);
      case "callExpr":
        return this.planCall(kind.value, scope);
      case "listExpr":
        return this.planList(kind.value, scope);
      case "structExpr":
        return this.planMap(kind.value, scope);
      case "comprehensionExpr":
        return this.planComprehension(kind.value, scope);
      default:
        return constant(new CelFailure("invalid expression"));
    }
  }

  private planName(name: string, scope: Scope): Step {
    const slot = scope.lastIndexOf(name);
    if (slot >= 0) return ({ locals }) => locals[slot];
    if (!this.variables.has(name)) return constant(findCelType(name) ?? UNRESOLVED);
    return ({ bindings }) => {
      const value = bindings[name];
      return value === undefined ? UNRESOLVED : value;
    };
  }

  private planSelect(expr: Expr, { operand, field, testOnly }: SelectExpr, scope: Scope): Step {
    const path = testOnly ? null : pathOf(expr);
    if (path !== null && this.variables.has(path)) return this.planName(path, []);
    const root = path?.split(".")[0] ?? "";
    const type = path === null || scope.includes(root) || this.variables.has(root) ? undefined : findCelType(path);
    if (type !== undefined) return constant(type);
    const owner = this.plan(operand, scope);
    const read = testOnly ? hasMember : readMember;
    return (frame) => {
      const value = owner(frame);
      return value instanceof CelFailure ? value : read(value, field);
    };
  }

  private planCall({ function: name, target, args }: CallExpr, scope: Scope): Step {
    const operands = (target === undefined ? args : [target, ...args]).map((operand) => this.plan(operand, scope));
    switch (name) {
      case "_[_]":
        return planIndex(operands as [Step, Step], readElement);
      case OPTIONAL_INDEX:
        return planIndex(operands as [Step, Step], readOptionalElement);
      case OPTIONAL_SELECT:
        return planIndex(operands as [Step, Step], (owner, name) => readOptionalMember(owner, name as string));
      case "or":
      case "orValue":
        if (target !== undefined && args.length === 1) return planOr(name, operands as [Step, Step]);
        return planFunction(name, target !== undefined, operands);
      case "_?_:_":
        return planConditional(operands as [Step, Step, Step]);
      case "_&&_":
        return planLogic(operands, false);
      case "_||_":
        return planLogic(operands, true);
      case "_==_":
        return planEquality(operands as [Step, Step], true);
      case "_!=_":
        return planEquality(operands as [Step, Step], false);
      case "!_":
        return planNegation(operands[0] as Step);
      case "@not_strictly_false": {
        const [operand] = operands as [Step];
        return (frame) => operand(frame) !== false;
      }
      default:
        return planFunction(name, target !== undefined, operands);
    }
  }

  private planList({ elements, optionalIndices }: ListExpr, scope: Scope): Step {
    const steps = elements.map((element) => this.plan(element, scope));
    const optional = new Set(optionalIndices);
    const build: Step = (frame) => {
      const items: unknown[] = [];
      for (const [i, step] of steps.entries()) {
        const item = step(frame);
        if (item instanceof CelFailure) return item;
        if (!optional.has(i)) items.push(item);
        else if (item instanceof CelOptional) items.push(...item);
        else return new CelFailure("an element that is marked with ? is not optional");
      }
      return toCelList(items);
    };
    const isConstant = elements.every(
      ({ exprKind: kind }) =>
        kind.case === "constExpr" ||
        (kind.case === "identExpr" &&
          !scope.includes(nameOf(kind.value.name)) &&
          !this.variables.has(nameOf(kind.value.name))),
    );
    return isConstant ? constant(build({ bindings: {}, locals: [] })) : build;
  }

  private planMap({ entries, messageName }: StructExpr, scope: Scope): Step {
    if (messageName !== "") return constant(new CelFailure("messages cannot be built"));
    const steps = entries.map(({ keyKind, value, optionalEntry }) => ({
      key: this.plan(keyKind.case === "mapKey" ? keyKind.value : undefined, scope),
      value: this.plan(value, scope),
      isOptional: optionalEntry,
    }));
    return (frame) => {
      const map = new Map<unknown, unknown>();
      for (const step of steps) {
        const computed = step.key(frame);
        const key = computed instanceof CelFailure ? computed : toMapKey(computed);
        if (key instanceof CelFailure) return key;
        let value = step.value(frame);
        if (value instanceof CelFailure) return value;
        if (step.isOptional) {
          if (!(value instanceof CelOptional)) return new CelFailure("an entry that is marked with ? is not optional");
          if (value.value === undefined) continue;
          value = value.value;
        }
        if (map.has(key)) return new CelFailure("map key conflict");
        map.set(key, value);
      }
      return celMap(map as never);
    };
  }

  /** Plans a comprehension. The plan charges for all elements before it visits the first. */
  private planComprehension(loop: ComprehensionExpr, scope: Scope): Step {
    if (isOptionalMacro(loop)) return this.planOptionalMacro(loop, scope);
    const accumulator = scope.length;
    const element = accumulator + 1;
    const inner = [...scope, loop.accuVar, loop.iterVar];
    const [init, range] = [this.plan(loop.accuInit, scope), this.plan(loop.iterRange, scope)];
    const [proceed, step] = [this.plan(loop.loopCondition, inner), this.plan(loop.loopStep, inner)];
    const result = this.plan(loop.result, inner.slice(0, -1));
    const cost = countNodes(loop.loopCondition as Expr) + countNodes(loop.loopStep as Expr);
    return (frame) => {
      const { locals } = frame;
      const initial = init(frame);
      if (initial instanceof CelFailure) return initial;
      const iterated = range(frame);
      if (iterated instanceof CelFailure) return iterated;
      const isElements = isList(iterated);
      if (!isElements && !isCelMap(iterated))
        return new CelFailure(`type mismatch: iterable vs ${nameOfKind(kindOf(iterated))}`);
      chargeSteps(iterated.size * cost);
      locals[accumulator] = initial;
      for (const item of isElements ? iterated : iterated.keys()) {
        locals[element] = item;
        const goesOn = proceed(frame);
        if (goesOn instanceof CelFailure) return goesOn;
        if (goesOn !== true) break;
        locals[accumulator] = step(frame);
      }
      return result(frame);
    };
  }

  /** Plans `optMap` and `optFlatMap`. */
  private planOptionalMacro({ accuVar, accuInit, iterVar, result }: ComprehensionExpr, scope: Scope): Step {
    const slot = scope.length;
    const [target, body] = [this.plan(accuInit, scope), this.plan(result, [...scope, accuVar])];
    return (frame) => {
      const optional = target(frame);
      if (optional instanceof CelFailure) return optional;
      if (!(optional instanceof CelOptional)) return noMatchingOverload("optMap", true, [optional]);
      if (optional.value === undefined) return OPTIONAL_NONE;
      frame.locals[slot] = optional.value;
      const value = body(frame);
      if (value instanceof CelFailure) return value;
      if (iterVar === OPTIONAL_MACROS["optMap"]) return new CelOptional(value);
      return value instanceof CelOptional ? value : noMatchingOverload("optFlatMap", true, [value]);
    };
  }
}

const constant =
  (value: unknown): Step =>
  () =>
    value;

/** Returns a name without the leading dot, which marks it as absolute. */
const nameOf = (name: string): string => name.replace(/^\./, "");

/** Returns the name that a chain of members forms, such as `google.protobuf.Timestamp`; null for other expressions. */
function pathOf({ exprKind: kind }: Expr): string | null {
  if (kind.case === "identExpr") return nameOf(kind.value.name);
  if (kind.case !== "selectExpr" || kind.value.testOnly || kind.value.operand === undefined) return null;
  const path = pathOf(kind.value.operand);
  return path === null ? null : `${path}.${kind.value.field}`;
}

function valueOfConstant(kind: Constant): unknown {
  return kind.case === "uint64Value" ? celUint(kind.value) : kind.case === "nullValue" ? null : kind.value;
}

function planIndex([owner, key]: [Step, Step], read: (owner: unknown, key: unknown) => unknown): Step {
  return (frame) => {
    const value = owner(frame);
    if (value instanceof CelFailure) return value;
    const index = key(frame);
    return index instanceof CelFailure ? index : read(value, index);
  };
}

/** Plans `or` and `orValue`, which evaluate their argument only if the optional has no value. */
function planOr(name: "or" | "orValue", [first, second]: [Step, Step]): Step {
  return (frame) => {
    const optional = first(frame);
    if (optional instanceof CelFailure) return optional;
    if (optional instanceof CelOptional && optional.value !== undefined)
      return name === "or" ? optional : optional.value;
    const other = second(frame);
    if (other instanceof CelFailure) return other;
    const isValid = optional instanceof CelOptional && (name === "orValue" || other instanceof CelOptional);
    return isValid ? other : noMatchingOverload(name, true, [optional, other]);
  };
}

function planConditional([condition, then, otherwise]: [Step, Step, Step]): Step {
  return (frame) => {
    const value = condition(frame);
    if (value === true) return then(frame);
    if (value === false) return otherwise(frame);
    if (value instanceof CelFailure) return value;
    return new CelFailure(`found no matching overload for _?_:_ applied to '(${nameOfKind(kindOf(value))})'`);
  };
}

/** Plans `&&` and `||`. If an operand equals `decisive`, it is the result, even if the other operand fails. */
function planLogic(operands: readonly Step[], decisive: boolean): Step {
  return (frame) => {
    let failure: CelFailure | null = null;
    for (const operand of operands) {
      const value = operand(frame);
      if (value === decisive) return decisive;
      if (typeof value !== "boolean")
        failure ??=
          value instanceof CelFailure
            ? value
            : new CelFailure(`type mismatch: expected bool, got ${nameOfKind(kindOf(value))}`);
    }
    return failure ?? !decisive;
  };
}

function planEquality([left, right]: [Step, Step], expected: boolean): Step {
  return (frame) => {
    const a = left(frame);
    if (a instanceof CelFailure) return a;
    const b = right(frame);
    return b instanceof CelFailure ? b : equalValues(a, b) === expected;
  };
}

/** Plans `!` separately for speed, because `exists` evaluates it for each element. */
function planNegation(operand: Step): Step {
  return (frame) => {
    const value = operand(frame);
    if (typeof value === "boolean") return !value;
    return value instanceof CelFailure ? value : noMatchingOverload("!_", false, [value]);
  };
}

/** Plans a call of a function, a method or an operator. */
function planFunction(name: string, isMethod: boolean, operands: readonly Step[]): Step {
  const [first, second] = operands as [Step, Step];
  if (operands.length === 1) {
    const overloads = findUnary(name, isMethod);
    return (frame) => {
      const a = first(frame);
      if (a instanceof CelFailure) return a;
      const overload = overloads[kindOf(a)];
      return overload === undefined ? noMatchingOverload(name, isMethod, [a]) : overload.call([a]);
    };
  }
  if (operands.length === 2) {
    const overloads = findBinary(name, isMethod);
    return (frame) => {
      const a = first(frame);
      if (a instanceof CelFailure) return a;
      const b = second(frame);
      if (b instanceof CelFailure) return b;
      const overload = overloads[kindOf(a) * KIND_COUNT + kindOf(b)];
      return overload === undefined ? noMatchingOverload(name, isMethod, [a, b]) : overload.call([a, b]);
    };
  }
  const overloads = findOverloads(name, isMethod, operands.length);
  return (frame) => {
    const values: unknown[] = [];
    for (const operand of operands) {
      const value = operand(frame);
      if (value instanceof CelFailure) return value;
      values.push(value);
    }
    const overload = overloads.find((overload) => fits(overload, values.map(kindOf)));
    return overload === undefined ? noMatchingOverload(name, isMethod, values) : overload.call(values);
  };
}

/** The overloads of a name, indexed by the kinds of their operands. */
type OverloadTable = readonly (Overload | undefined)[];

const unaryTables = new Map<string, OverloadTable>();
const binaryTables = new Map<string, OverloadTable>();

const fits = ({ kinds }: Overload, operandKinds: readonly number[]): boolean =>
  kinds.every((kind, i) => kind === ANY_KIND || kind === operandKinds[i]);

function findUnary(name: string, isMethod: boolean): OverloadTable {
  return cached(unaryTables, `${isMethod ? "." : ""}${name}`, () => {
    const overloads = findOverloads(name, isMethod, 1);
    return Array.from({ length: KIND_COUNT }, (_, kind) => overloads.find((overload) => fits(overload, [kind])));
  });
}

function findBinary(name: string, isMethod: boolean): OverloadTable {
  return cached(binaryTables, `${isMethod ? "." : ""}${name}`, () => {
    const overloads = findOverloads(name, isMethod, 2);
    return Array.from({ length: KIND_COUNT * KIND_COUNT }, (_, pair) =>
      overloads.find((overload) => fits(overload, [Math.floor(pair / KIND_COUNT), pair % KIND_COUNT])),
    );
  });
}

function cached(tables: Map<string, OverloadTable>, key: string, build: () => OverloadTable): OverloadTable {
  let table = tables.get(key);
  if (table === undefined) tables.set(key, (table = build()));
  return table;
}

/**
 * Returns the error for operands without a matching overload. Charges steps for it, because the error message takes
 * longer than most calls.
 */
function noMatchingOverload(name: string, isMethod: boolean, values: readonly unknown[]): CelFailure {
  chargeSteps(8);
  const kinds = values.map((value) => nameOfKind(kindOf(value)));
  const target = isMethod ? `${kinds.shift() ?? ""}.` : "";
  return new CelFailure(`found no matching overload for '${name}' applied to '${target}(${kinds.join(", ")})'`);
}
