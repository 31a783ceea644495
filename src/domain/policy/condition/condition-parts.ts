/** Evaluates each subexpression of a condition for one request. Used only for explanations, not for decisions. */
import { unparse, type CelInput } from "@bufbuild/cel";
import { MAX_STEPS } from "./cel.ts";
import { CelFailure } from "./cel-failure.ts";
import { Meter, runMetered } from "./cel-meter.ts";
import { parseExpression } from "./cel-parse.ts";
import { planExpression, type Bindings } from "./cel-plan.ts";
import { listIterationItems, printCelValue } from "./cel-print.ts";
import { isBinding, isOptionalMacro, type Expr } from "./cel-tree.ts";
import { CelOptional } from "./cel-values.ts";
import { explainError, NO_NAMED_VALUES, type Activation, type NamedValues } from "./condition.ts";
import { checkShape, TYPE_NAMES, VARIABLES } from "./condition-shape.ts";

export interface ConditionPart {
  /** The expression as CEL source. */
  expression: string;
  /** Nesting depth; 0 for the operands of the outermost `&&`, `||` and `!`. */
  depth: number;
  /**
   * For a part in the body of a macro such as `all`: the current element, such as `item = {"price": 120}`, or `3 more`
   * for elements that were not evaluated. For the value of a binding or an optional macro: the name of its variable.
   * Null for all other parts.
   */
  element: string | null;
  /** The value as a shortened string; null if there is no value. */
  value: string | null;
  /** The reason why there is no value; null if there is one. */
  error: string | null;
}

/** Maximum number of elements of a list that are evaluated individually. */
const MAX_ELEMENTS = 10;
/**
 * Maximum number of steps for all parts together. Higher than in a decision, because each part is evaluated separately.
 */
const MAX_STEPS_OF_PARTS = 4 * MAX_STEPS;
const LOGIC = ["_&&_", "_||_"];

/**
 * Returns the parts of a condition with their values.
 * @param source the source of a condition that compiles
 */
export function evaluateConditionParts(
  source: string,
  activation: Activation,
  namedValues: NamedValues = NO_NAMED_VALUES,
): ConditionPart[] {
  const written = parseExpression(source);
  const variables = [...VARIABLES, ...namedValues.names];
  const { names } = checkShape(written, true, variables);
  const parts: ConditionPart[] = [];
  let remainingSteps = MAX_STEPS_OF_PARTS;

  function evaluate(expr: Expr, { variables, bindings }: Scope): { result: unknown } | { error: string } {
    const meter = new Meter(Math.min(MAX_STEPS, remainingSteps));
    const most = meter.remaining;
    const tooMuch = { error: "it takes too many steps" };
    if (most <= 0) return tooMuch;
    try {
      const run = planExpression(expr, variables);
      const result = runMetered(meter, () => run(bindings));
      if (meter.exceeded) return tooMuch;
      return result instanceof CelFailure ? { error: explainError(result.message, names) } : { result };
    } catch {
      return meter.exceeded ? tooMuch : { error: explainError("", names) };
    } finally {
      remainingSteps -= most - Math.max(0, meter.remaining) + 1;
    }
  }

  function add(expr: Expr, depth: number, scope: Scope, element: string | null): unknown {
    const outcome = evaluate(expr, scope);
    const failed = "error" in outcome;
    parts.push({
      expression: unparse({ ...written, expr }),
      depth,
      element,
      value: failed ? null : printCelValue(outcome.result),
      error: failed ? outcome.error : null,
    });
    return failed ? undefined : outcome.result;
  }

  function visit(expr: Expr, depth: number, scope: Scope, element: string | null): void {
    if (isPlain(expr, scope)) return;
    const result = add(expr, depth, scope, element);
    const kind = expr.exprKind;
    if (kind.case === "callExpr") {
      for (const operand of operandsOf(expr)) visit(operand, depth + 1, scope, null);
    } else if (kind.case === "selectExpr" && result === undefined) {
      if (kind.value.operand !== undefined) visit(kind.value.operand, depth + 1, scope, null);
    } else if (kind.case === "listExpr") {
      for (const item of kind.value.elements) visit(item, depth + 1, scope, null);
    } else if (kind.case === "comprehensionExpr") {
      const { iterRange, iterVar, accuVar, accuInit, result: bound } = kind.value;
      if (iterRange === undefined) return;
      if (isBinding(kind.value) || isOptionalMacro(kind.value)) {
        const bare = add(accuInit as Expr, depth + 1, scope, accuVar);
        const value = isOptionalMacro(kind.value) && bare instanceof CelOptional ? bare.value : bare;
        // Skip the body if the bound value failed to evaluate, because everything that uses the value would fail, too.
        // Also skip the body for an optional without a value.
        if (value !== undefined) visit(bound as Expr, depth + 1, addVariable(scope, accuVar, value as CelInput), null);
        return;
      }
      const range = add(iterRange, depth + 1, scope, null);
      const body = bodyOf(expr);
      if (body === null) return;
      const items = listIterationItems(range);
      for (const item of items.slice(0, MAX_ELEMENTS))
        visit(body, depth + 1, addVariable(scope, iterVar, item as CelInput), `${iterVar} = ${printCelValue(item)}`);
      const more = items.length - MAX_ELEMENTS;
      if (more > 0)
        parts.push({
          expression: unparse({ ...written, expr: body }),
          depth: depth + 1,
          element: `${more} more`,
          value: null,
          error: `only the first ${MAX_ELEMENTS} are evaluated`,
        });
    }
  }

  visit(written.expr, 0, { variables, bindings: activation.bindings(namedValues) }, null);
  return parts;
}

interface Scope {
  readonly variables: readonly string[];
  readonly bindings: Bindings;
}

/** Adds the variable of a macro. Does not read other variables, because a read of a derived value evaluates it. */
function addVariable({ variables, bindings }: Scope, name: string, value: CelInput): Scope {
  return {
    variables: [...variables, name],
    bindings: Object.create(bindings, { [name]: { value } }) as Bindings,
  };
}

/** Returns true if the value should not be displayed, because it is a constant or a whole map of the request. */
function isPlain({ exprKind }: Expr, { variables }: Scope): boolean {
  if (exprKind.case === "constExpr") return true;
  if (exprKind.case === "identExpr") {
    const { name } = exprKind.value;
    const isType = TYPE_NAMES.includes(name) && !variables.includes(name);
    return isType || ["params", "context", "principal", "agent_metadata"].includes(name);
  }
  return (
    exprKind.case === "listExpr" && exprKind.value.elements.every((element) => element.exprKind.case === "constExpr")
  );
}

/** Returns the operands. Flattens `a && b && c`, which is nested in the tree, into three operands. */
function operandsOf({ exprKind }: Expr): Expr[] {
  if (exprKind.case !== "callExpr") return [];
  const { function: name, target, args } = exprKind.value;
  const operands = [...(target === undefined ? [] : [target]), ...args];
  if (!LOGIC.includes(name)) return operands;
  return operands.flatMap((operand) =>
    operand.exprKind.case === "callExpr" && operand.exprKind.value.function === name ? operandsOf(operand) : [operand],
  );
}

/** Returns the expression that a macro evaluates for each element, or null. */
function bodyOf({ exprKind }: Expr): Expr | null {
  const step = exprKind.case === "comprehensionExpr" ? exprKind.value.loopStep : undefined;
  if (step?.exprKind.case !== "callExpr") return null;
  const { function: name, args } = step.exprKind.value;
  if (LOGIC.includes(name)) return args[1] ?? null;
  if (name === "_?_:_") return args[0] ?? null;
  const addend = args[1]?.exprKind;
  return name === "_+_" && addend?.case === "listExpr" ? (addend.value.elements[0] ?? null) : null;
}
