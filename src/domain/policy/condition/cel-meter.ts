/**
 * Meters the cost of evaluation, so that no expression and no request can delay decisions. One step is roughly the
 * evaluation of one syntax tree node.
 */
import { celError, CelScalar, isCelError, isCelList, isCelMap, isCelType, isCelUint } from "@bufbuild/cel";
import { isReflectMessage } from "@bufbuild/protobuf/reflect";

/** The steps that one decision has left. */
export class Meter {
  remaining: number;
  /** Set when the steps ran out. The condition's result is then invalid. */
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
/** Meter of the current evaluation. One variable suffices because evaluation is synchronous. */
let meter = idle;

/**
 * Runs `evaluate` on a decision's meter. Disables stack traces meanwhile: errors are ordinary values in CEL, and
 * capturing a stack costs more than a step.
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

/** Charges steps to the current evaluation. Throws when too few are left. */
export function charge(steps: number): void {
  meter.charge(steps);
}

/** The parts of a library function that the meter needs. */
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

/** Returns the steps to charge before the call. */
export type Cost = (target: unknown, args: readonly unknown[]) => number;

/** Returns the length of a text in UTF-16 code units or of bytes; 0 for other values. */
export const valueLength = (value: unknown): number =>
  typeof value === "string" || value instanceof Uint8Array ? value.length : 0;

/** Returns a type test that does not construct the value's type. */
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
 * Wraps a function so that it charges its cost first. Its errors omit the argument values, because reasons are stored
 * forever and arguments can be erased.
 */
export function withCost(func: CelFunction, cost: Cost | undefined): CelFunction {
  const refusal = `"${func.name.replaceAll(/[_@]/g, "")}" cannot take these values`;
  const targetFits = func.target === undefined ? (value: unknown) => value === undefined : typeTest(func.target);
  const tests = func.arguments.map(typeTest);
  // Types were tested above; declaring `dyn` stops the library from testing them again.
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
