/**
 * Expands the macros over past actions to comprehensions over the variable `history`: `history.any(h, test)`,
 * `history.count(h, test)`, `history.sum(h, test, number)` (a double), and `history.last(h, test)` (the newest action
 * that passes the test, or null).
 */
import { celFunc, CelScalar } from "@bufbuild/cel";
import { childrenOf, readAccess, type CallExpr, type Expr, type ParsedExpression } from "./cel-tree.ts";

/** The variable that contains the past actions. */
export const HISTORY_VARIABLE = "history";

/** Examples of the macros, keyed by the name of the macro. */
export const HISTORY_MACROS: Readonly<Record<string, string>> = {
  any: 'history.any(h, h.tool == "inbox")',
  count: 'history.count(h, h.status == "failed") >= 2',
  sum: 'history.sum(h, h.tool == "stripe", h.params.amount) <= 1000.0',
  last: 'history.last(h, h.tool == "crm").at',
};

const ACCUMULATOR = "@result";

/** Converts the numbers that `history.sum` adds. No expression can call it, because no name begins with "@". */
const SUMMAND = "@sum";

/**
 * Converts a number for the sum. Throws for negative numbers, NaN and infinity, because an agent could make the sum
 * useless with a single such number.
 */
function toSummand(value: number): number {
  if (value >= 0 && value < Infinity) return value;
  throw new Error("the number is negative or not finite");
}

const { DOUBLE, INT, UINT } = CelScalar;

/**
 * Functions that the expanded macros call. They do not convert strings to numbers, because the policy's author must
 * choose the conversion.
 */
export const HISTORY_FUNCTIONS: readonly unknown[] = [
  celFunc(SUMMAND, [INT], DOUBLE, (value) => toSummand(Number(value))),
  celFunc(SUMMAND, [UINT], DOUBLE, ({ value }) => toSummand(Number(value))),
  celFunc(SUMMAND, [DOUBLE], DOUBLE, toSummand),
];

/**
 * Replaces a call of a macro. Does not change a call with other arguments, which then fails because no function has
 * this name.
 */
export function expandHistoryMacro(expr: Expr, call: CallExpr, { sourceInfo }: ParsedExpression): void {
  const { function: macro, target, args } = call;
  const [element, test, value] = args;
  const isHistory = target?.exprKind.case === "identExpr" && target.exprKind.value.name === HISTORY_VARIABLE;
  if (!isHistory || !Object.hasOwn(HISTORY_MACROS, macro) || args.length !== (macro === "sum" ? 3 : 2)) return;
  if (element?.exprKind.case !== "identExpr" || test === undefined) return;
  const { name: variable } = element.exprKind.value;
  const part = (exprKind: Expr["exprKind"]): Expr => ({ $typeName: "cel.expr.Expr", id: expr.id, exprKind });
  const constant = (constantKind: Extract<Expr["exprKind"], { case: "constExpr" }>["value"]["constantKind"]): Expr =>
    part({ case: "constExpr", value: { $typeName: "cel.expr.Constant", constantKind } });
  const applied = (name: string, ...operands: Expr[]): Expr =>
    part({ case: "callExpr", value: { $typeName: "cel.expr.Expr.Call", function: name, args: operands } });
  const named = (name: string): Expr => part({ case: "identExpr", value: { $typeName: "cel.expr.Expr.Ident", name } });
  const yes = constant({ case: "boolValue", value: true });
  const ifTest = (then: Expr): Expr => applied("_?_:_", test, then, named(ACCUMULATOR));
  const found = named(ACCUMULATOR);
  const none = constant({ case: "nullValue", value: 0 });
  const loops: Record<string, () => { start: Expr; goesOn: Expr; step: Expr }> = {
    any: () => ({
      start: constant({ case: "boolValue", value: false }),
      goesOn: applied("@not_strictly_false", applied("!_", found)),
      step: applied("_||_", found, test),
    }),
    count: () => ({
      start: constant({ case: "int64Value", value: 0n }),
      goesOn: yes,
      step: ifTest(applied("_+_", found, constant({ case: "int64Value", value: 1n }))),
    }),
    sum: () => ({
      start: constant({ case: "doubleValue", value: 0 }),
      goesOn: yes,
      step: ifTest(applied("_+_", found, applied(SUMMAND, value as Expr))),
    }),
    last: () => ({ start: none, goesOn: applied("_==_", found, none), step: ifTest(named(variable)) }),
  };
  const { start, goesOn, step } = (loops[macro] as () => { start: Expr; goesOn: Expr; step: Expr })();
  // Give the call a new id, because the printer looks up each id among the macros.
  if (sourceInfo !== undefined) sourceInfo.macroCalls[expr.id.toString()] = { ...expr, id: 0n };
  expr.exprKind = {
    case: "comprehensionExpr",
    value: {
      $typeName: "cel.expr.Expr.Comprehension",
      iterVar: variable,
      iterVar2: "",
      iterRange: target as Expr,
      accuVar: ACCUMULATOR,
      accuInit: start,
      loopCondition: goesOn,
      loopStep: step,
      result: found,
    },
  };
}

/** Returns the path of a member such as `result.customer_id`, without `result`. */
export const resultPath = (member: string): string[] => member.split(".").slice(1);

/** The members of `params` and `context` of past actions that expressions read; null means all members. */
export interface HistoryMembers {
  context: string[] | null;
  params: string[] | null;
}

/**
 * Finds the members of past actions that an expression reads. Only these members are read, recorded and compared, so
 * that the record of a decision stays small.
 */
export function findHistoryMembers(expressions: readonly Expr[]): HistoryMembers {
  const read = { context: new Set<string>(), params: new Set<string>() };
  const all = { context: false, params: false };
  const visit = (expr: Expr): void => {
    const step = readAccess(expr);
    const owner = step === null ? null : readAccess(step.owner);
    if (step !== null && owner !== null && isContent(owner.name) && step.name !== null) {
      read[owner.name].add(step.name);
      return visit(owner.owner);
    }
    if (step !== null && isContent(step.name)) all[step.name] = true;
    // `h[name]` can read any member.
    if (step !== null && step.name === null) all.context = all.params = true;
    childrenOf(expr).forEach(visit);
  };
  expressions.forEach(visit);
  return {
    context: all.context ? null : [...read.context].sort(),
    params: all.params ? null : [...read.params].sort(),
  };
}

const isContent = (name: string | null): name is "context" | "params" => name === "context" || name === "params";
