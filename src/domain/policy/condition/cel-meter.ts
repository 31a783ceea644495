/**
 * What evaluating costs, counted so that no expression and no request can hold a decision up. A cost is in steps of
 * roughly the evaluation of one node of the syntax tree.
 */
import { celError, CelScalar, isCelError, isCelList, isCelMap, isCelType, isCelUint } from "@bufbuild/cel";
import { isReflectMessage } from "@bufbuild/protobuf/reflect";

/** What one decision may still spend. */
export class Meter {
  remaining: number;
  /** Set when something was refused; the condition's own result is then worth nothing. */
  exceeded = false;

  constructor(steps: number) {
    this.remaining = steps;
  }

  charge(steps: number): void {
    this.remaining -= steps;
    if (this.remaining >= 0) return;
    this.exceeded = true;
    throw new Error("too much work");
  }
}

const idle = new Meter(0);
/** The meter of the evaluation that runs: evaluation is synchronous. */
let meter = idle;

/**
 * Runs `evaluate` on the meter of a decision. Stack traces are off meanwhile: an error is a value in
 * CEL and can come up at every step, and taking its stack costs more than the step.
 */
export function runMetered<T>(on: Meter, evaluate: () => T): T {
  const outer = meter;
  const depth = Error.stackTraceLimit;
  meter = on;
  Error.stackTraceLimit = 0;
  try {
    return evaluate();
  } finally {
    meter = outer;
    Error.stackTraceLimit = depth;
  }
}

/** Takes steps from the evaluation that runs. Throws when there are not so many left. */
export function charge(steps: number): void {
  meter.charge(steps);
}

/** A function of the evaluator, by what of it is called. */
export interface CelFunction {
  readonly name: string;
  readonly id: string;
  readonly target: Typed | undefined;
  readonly arguments: readonly Typed[];
  call(id: number, target: unknown, args: unknown[]): unknown;
}

interface Typed {
  readonly kind: string;
  readonly name: string;
}

/** Steps before the call. */
export type Cost = (target: unknown, args: readonly unknown[]) => number;

/** UTF-16 code units of a text, bytes of bytes, else 0. */
export const lengthOf = (value: unknown): number =>
  typeof value === "string" || value instanceof Uint8Array ? value.length : 0;

/** Whether a value is of a type, without making the value's type first. */
function typeTest({ kind, name }: Typed): (value: unknown) => boolean {
  switch (name) {
    case "dyn":
      return () => true;
    case "int":
      return (value) => typeof value === "bigint";
    case "double":
      return (value) => typeof value === "number";
    case "bool":
      return (value) => typeof value === "boolean";
    case "string":
      return (value) => typeof value === "string";
    case "bytes":
      return (value) => value instanceof Uint8Array;
    case "uint":
      return isCelUint;
    case "list":
      return isCelList;
    case "map":
      return isCelMap;
    case "type":
      return (value) => isCelType(value as Parameters<typeof isCelType>[0]);
  }
  if (kind !== "object") throw new Error(`no test for values of the type ${name}`);
  return (value) => isReflectMessage(value) && value.desc.typeName === name;
}

/**
 * The same function: charged before, and its errors without the values in them, because reasons are kept forever while
 * arguments can be erased.
 */
export function withCost(func: CelFunction, cost: Cost | undefined): CelFunction {
  const refusal = `"${func.name.replaceAll(/[_@]/g, "")}" cannot take these values`;
  const targetFits = func.target === undefined ? (value: unknown) => value === undefined : typeTest(func.target);
  const tests = func.arguments.map(typeTest);
  // The evaluator would make the type of each value to look at it once more.
  const unchecked = Object.create(func, {
    target: { value: func.target === undefined ? undefined : CelScalar.DYN },
    arguments: { value: func.arguments.map(() => CelScalar.DYN) },
  }) as CelFunction;
  const fits = (target: unknown, args: readonly unknown[]): boolean =>
    args.length === tests.length && targetFits(target) && tests.every((fit, i) => fit(args[i]));
  return Object.create(func, {
    call: {
      value(id: number, target: unknown, args: unknown[]): unknown {
        if (!fits(target, args)) return undefined;
        try {
          if (cost !== undefined) meter.charge(cost(target, args));
        } catch (error) {
          return celError(meter.exceeded ? error : refusal, id);
        }
        const result = unchecked.call(id, target, args);
        return isCelError(result) ? celError(refusal, id) : result;
      },
    },
  }) as CelFunction;
}
