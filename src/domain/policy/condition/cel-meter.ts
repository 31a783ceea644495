/**
 * Meters the cost of evaluation, so that expressions and requests cannot delay decisions. One step is roughly the
 * evaluation of one syntax tree node.
 */
import { CelScalar, isCelError } from "@bufbuild/cel";
import { CelFailure } from "./cel-failure.ts";
import { kindOfType, type DeclaredType } from "./cel-kinds.ts";

/** Counts the steps that an expression has left. */
export class Meter {
  remaining: number;
  /** Whether the expression has used up its steps. If so, its result is invalid. */
  exceeded = false;

  constructor(steps: number) {
    this.remaining = steps;
  }

  charge(steps: number): void {
    this.remaining -= steps;
    if (this.remaining < 0) this.exhaust();
  }

  exhaust(): never {
    this.exceeded = true;
    throw new Error("too much work");
  }
}

const idle = new Meter(0);
/** Meter of the current evaluation. One variable suffices because evaluation is synchronous. */
let meter = idle;

/**
 * Runs `evaluate` with a meter. Disables stack traces during the evaluation, because errors are ordinary
 * values in CEL, and capturing a stack takes longer than a step.
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

/**
 * Uses up the remaining steps and throws, because the evaluation reads a value whose own evaluation ran out of steps.
 */
export function exhaustSteps(): never {
  return meter.exhaust();
}

/** Charges steps to the current evaluation. Throws if too few steps remain. */
export function chargeSteps(steps: number): void {
  meter.charge(steps);
}

/** A function as its library declares it. */
export interface CelFunction {
  readonly name: string;
  readonly id: string;
  readonly target: DeclaredType | undefined;
  readonly arguments: readonly DeclaredType[];
  readonly result: DeclaredType;
  call(id: number, target: unknown, args: unknown[]): unknown;
}

/** A function for operands of certain kinds. It charges its own steps. */
export interface Overload {
  readonly id: string;
  readonly name: string;
  /** Whether the first operand is the target of a method. */
  readonly isMethod: boolean;
  readonly kinds: readonly number[];
  /** Returns a CelFailure if the function fails. The operands must have the kinds of the overload. */
  call(operands: unknown[]): unknown;
}

/** Returns the steps to charge before a call. The target of a method is the first operand. */
export type CostFunction = (operands: readonly unknown[]) => number;

/** Returns the length of a string in UTF-16 code units, or the number of bytes; 0 for other values. */
export const valueLength = (value: unknown): number =>
  typeof value === "string" || value instanceof Uint8Array ? value.length : 0;

/**
 * Returns an overload that charges the cost of a function and then calls it. Its errors omit the argument values,
 * because reasons are stored forever and arguments can be erased.
 */
export function meterFunction(func: CelFunction, cost: CostFunction | undefined): Overload {
  const isMethod = func.target !== undefined;
  const declared = isMethod ? [func.target, ...func.arguments] : func.arguments;
  const failure = new CelFailure(`"${func.name.replaceAll(/[_@]/g, "")}" cannot take these values`);
  // Declare `dyn`, so that the library does not test the types again: the caller has selected the overload by its
  // kinds.
  const unchecked = Object.create(func, {
    target: { value: isMethod ? CelScalar.DYN : undefined },
    arguments: { value: func.arguments.map(() => CelScalar.DYN) },
  }) as CelFunction;
  return {
    id: func.id,
    name: func.name,
    isMethod,
    kinds: declared.map((type) => kindOfType(type)),
    call(operands) {
      try {
        if (cost !== undefined) meter.charge(cost(operands));
      } catch {
        return failure;
      }
      const result = isMethod
        ? unchecked.call(0, operands[0], operands.slice(1))
        : unchecked.call(0, undefined, operands);
      return isCelError(result) ? failure : result;
    },
  };
}
