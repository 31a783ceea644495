/** `sum`, `min` and `max` of lists, under the names of Kubernetes' CEL library, and `math.greatest` and `math.least`. */
import { celFunc, celMethod, CelScalar, celUint, isCelUint, listType, type CelList } from "@bufbuild/cel";
import { isReflectMessage } from "@bufbuild/protobuf/reflect";
import { MAX_INT, MAX_UINT, MIN_INT } from "./cel-conversions.ts";
import { codePointsOf, comparePoints, elementsOf } from "./cel-lists.ts";
import { nanosOf } from "./cel-time.ts";
import { isList } from "./cel-values.ts";

const { DYN } = CelScalar;
const LIST_TYPE = listType(DYN);

type CelNumber = bigint | number | { value: bigint };

export const isNumber = (value: unknown): value is CelNumber =>
  typeof value === "bigint" || typeof value === "number" || isCelUint(value);
const toPlainNumber = (value: CelNumber): bigint | number => (typeof value === "object" ? value.value : value);

/**
 * Compares numbers exactly, even of different types. NaN is larger than all other numbers, so that the order is total.
 */
export function compareNumbers(left: CelNumber, right: CelNumber): number {
  const [a, b] = [toPlainNumber(left), toPlainNumber(right)];
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Compares two numbers, or two values of the same type. Throws for values that have no order. */
function compareValues(a: unknown, b: unknown): number {
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b);
  if (typeof a === "string" && typeof b === "string") return comparePoints(codePointsOf(a), codePointsOf(b));
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return comparePoints([...a], [...b]);
  if (isReflectMessage(a) && isReflectMessage(b) && a.desc.typeName === b.desc.typeName)
    return compareNumbers(nanosOf(a), nanosOf(b));
  throw new Error("the values have no order");
}

/** Returns the largest value if `sign` is 1, the smallest if it is -1. Throws for an empty list. */
function findExtreme(sign: 1 | -1, values: readonly unknown[]): unknown {
  if (values.length === 0) throw new Error("the list is empty");
  // A single value must have an order, too.
  compareValues(values[0], values[0]);
  return values.reduce((best, value) => (compareValues(value, best) * sign > 0 ? value : best));
}

/** Returns the largest or the smallest number. A single argument can be a list. */
function extremeNumber(sign: 1 | -1, args: readonly unknown[]): unknown {
  const [first] = args;
  const numbers = args.length === 1 && isList(first) ? elementsOf(first) : args;
  if (!numbers.every(isNumber)) throw new Error("the arguments are not numbers");
  return findExtreme(sign, numbers);
}

/**
 * Returns the sum of the elements, which is 0 for an empty list. If some elements are doubles and the others are ints,
 * the sum is a double, because JSON does not distinguish 5 from 5.0. Throws for other elements, and if a sum of integers
 * overflows.
 */
function sum(this: CelList): unknown {
  const elements = elementsOf(this);
  if (elements.some((element) => typeof element === "number")) {
    if (!elements.every((element) => typeof element === "number" || typeof element === "bigint"))
      throw new Error("the elements are not numbers of the same kind");
    return elements.reduce<number>((total, element) => total + Number(element), 0);
  }
  if (elements.length > 0 && elements.every(isCelUint)) {
    const total = elements.reduce((sum, { value }) => sum + value, 0n);
    if (total > MAX_UINT) throw new Error("the sum is too large");
    return celUint(total);
  }
  if (!elements.every((element) => typeof element === "bigint"))
    throw new Error("the elements are not numbers of the same kind");
  const total = elements.reduce((sum, element) => sum + element, 0n);
  if (total < MIN_INT || total > MAX_INT) throw new Error("the sum is too large");
  return total;
}

const DYNS = [1, 2, 3, 4, 5].map((count) => Array.from({ length: count }, () => DYN));

export const AGGREGATE_FUNCTIONS: readonly unknown[] = [
  celMethod("sum", LIST_TYPE, [], DYN, sum as never),
  celMethod("min", LIST_TYPE, [], DYN, function () {
    return findExtreme(-1, elementsOf(this)) as never;
  }),
  celMethod("max", LIST_TYPE, [], DYN, function () {
    return findExtreme(1, elementsOf(this)) as never;
  }),
  ...DYNS.flatMap((types) => [
    celFunc("math.greatest", types, DYN, (...args: unknown[]) => extremeNumber(1, args) as never),
    celFunc("math.least", types, DYN, (...args: unknown[]) => extremeNumber(-1, args) as never),
  ]),
];
