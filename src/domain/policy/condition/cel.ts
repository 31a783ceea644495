/**
 * The CEL environment of conditions. It differs from the library: conversions follow the specification
 * (cel-conversions.ts), strings are compared by code points, and calendar fields do not depend on the process's time
 * zone. Errors contain no value of the request.
 *
 * Every function charges steps in proportion to its work, so conditions cannot delay decisions. A replayed decision
 * must cost the same, so a change of a cost changes the meaning of a policy set.
 */
import {
  celEnv,
  celFunc,
  celMethod,
  CelScalar,
  celType,
  listType,
  mapType,
  objectType,
  type CelInput,
  type CelList,
} from "@bufbuild/cel";
import { CONVERSION_FUNCTIONS, REMOVED_CONVERSIONS } from "./cel-conversions.ts";
import { HISTORY_FUNCTIONS } from "./cel-history.ts";
import { CEL_LIBRARY_FUNCTIONS } from "./cel-library.ts";
import { CIDR, IP, NETWORK_FUNCTIONS } from "./cel-network.ts";
import { OPTIONAL, OPTIONAL_FUNCTIONS } from "./cel-optional.ts";
import { concatLists, listContains, equalValues } from "./cel-lists.ts";
import {
  chargeSteps,
  valueLength,
  meterFunction,
  type CelFunction,
  type CostFunction,
  type Overload,
} from "./cel-meter.ts";
import { matchesPattern } from "./cel-patterns.ts";
import { PATTERN_FUNCTIONS } from "./cel-pattern-functions.ts";
import { CALENDAR_METHODS, TIME_ARITHMETIC, TIMESTAMP, wallClock } from "./cel-time.ts";
import { CelCidr, CelIp, CelOptional } from "./cel-values.ts";

/**
 * Maximum number of steps of one condition, one named value or one other expression. Each has its own steps, so that no
 * rule can exhaust those of another. docs/policies.md gives the measured worst case.
 */
export const MAX_STEPS = 1_000_000;

/** Maximum length of a string that is converted to a number, time or duration. */
const MAX_LITERAL = 128;

const literal: CostFunction = ([value]) => {
  if (valueLength(value) > MAX_LITERAL) throw new Error("the text is too long");
  return typeof value === "string" ? 10 : 0;
};
const comparisonCost: CostFunction = ([a, b]) => 1 + (Math.min(valueLength(a), valueLength(b)) >> 4);
/** Charges more for times and durations, because a function allocates a new message for each. */
const arithmeticCost: CostFunction = ([a, b]) =>
  typeof a === "object" || typeof b === "object"
    ? 6 + ((valueLength(a) + valueLength(b)) >> 4)
    : (valueLength(a) + valueLength(b)) >> 4;
const affixCost: CostFunction = ([text, part]) => 1 + (Math.min(valueLength(text), valueLength(part)) >> 4);

const COSTS: Readonly<Record<string, CostFunction>> = {
  "_<_": comparisonCost,
  "_<=_": comparisonCost,
  "_>_": comparisonCost,
  "_>=_": comparisonCost,
  "_+_": arithmeticCost,
  "_-_": arithmeticCost,
  "@in": ([key]) => valueLength(key) >> 6,
  contains: ([text, part]) => {
    const [n, m] = [valueLength(text), valueLength(part)];
    return m > n ? 1 : 1 + ((n - m + 1) * Math.max(1, m)) / 256 + (n + m) / 64;
  },
  startsWith: affixCost,
  endsWith: affixCost,
  int: literal,
  uint: literal,
  double: literal,
  bool: literal,
  timestamp: (operands) => 10 + literal(operands),
  duration: (operands) => 10 + literal(operands) + (valueLength(operands[0]) >> 1),
  bytes: ([a]) => valueLength(a) >> 3,
  string: ([a]) => (typeof a === "object" ? 15 + (valueLength(a) >> 3) : 2),
};

const { BOOL, DYN, INT, STRING } = CelScalar;
const LIST_TYPE = listType(DYN);
const MAP = mapType(DYN, DYN);

function countCodePoints(text: string): bigint {
  chargeSteps(text.length >> 6);
  let count = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit <= 0xdbff) {
      const next = text.charCodeAt(i + 1);
      if (next >= 0xdc00 && next <= 0xdfff) count--;
    }
  }
  return BigInt(count);
}

function calendarMethods(name: string): unknown[] {
  const field = CALENDAR_METHODS[name] as (date: Date) => number;
  const read = (stamp: { message: unknown }, zone?: string): bigint => {
    const { seconds, nanos } = stamp.message as { seconds: bigint; nanos: number };
    if (zone !== undefined) chargeSteps(500);
    return BigInt(field(wallClock(Number(seconds) * 1000 + Math.floor(nanos / 1e6), zone)));
  };
  return [
    celMethod(name, TIMESTAMP, [], INT, function () {
      return read(this);
    }),
    celMethod(name, TIMESTAMP, [STRING], INT, function (zone) {
      return read(this, zone);
    }),
  ];
}

const standard = celEnv();
const standardFunctions = [...standard.funcs] as unknown as CelFunction[];

/** Returns the number of keys. Charges steps, because `map.size` lists and sorts the keys. */
function sizeOfMap(map: { size: number }): bigint {
  chargeSteps(map.size >> 4);
  return BigInt(map.size);
}

/**
 * Compares strings by code points and returns a negative number, zero or a positive number. UTF-16 order would put
 * U+10000 before U+E000.
 */
function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  const shorter = Math.min(a.length, b.length);
  let i = 0;
  while (i < shorter && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  if (i === shorter) return a.length - b.length;
  const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
  const isHalf = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff;
  return isHalf(x) === isHalf(y) ? x - y : isHalf(x) ? 1 : -1;
}

function typeOf(value: unknown): ReturnType<typeof celType> {
  if (value instanceof CelOptional) return OPTIONAL;
  if (value instanceof CelIp) return IP;
  return value instanceof CelCidr ? CIDR : celType(value as never);
}

const overrides = [
  celFunc("size", [STRING], INT, countCodePoints),
  celMethod("size", STRING, [], INT, function () {
    return countCodePoints(this);
  }),
  celMethod("matches", STRING, [STRING], BOOL, matchesPattern),
  ...Object.keys(CALENDAR_METHODS).flatMap(calendarMethods),
  ...CONVERSION_FUNCTIONS,
  ...TIME_ARITHMETIC,
  celFunc("size", [MAP], INT, sizeOfMap),
  celMethod("size", MAP, [], INT, function () {
    return sizeOfMap(this);
  }),
  celFunc("_+_", [LIST_TYPE, LIST_TYPE], LIST_TYPE, (a, b) =>
    concatLists(a as CelList, b as CelList, (copied) => chargeSteps(1 + (copied >> 1))),
  ),
  celFunc("_==_", [DYN, DYN], BOOL, equalValues),
  celFunc("_!=_", [DYN, DYN], BOOL, (a, b) => !equalValues(a, b)),
  celFunc("@in", [DYN, LIST_TYPE], BOOL, (value, list) => listContains(value, list as CelList)),
  ...[STRING, INT, CelScalar.UINT, CelScalar.DOUBLE, BOOL].map((key) =>
    celFunc("@in", [key, MAP], BOOL, (name, map) => map.get(name as never) !== undefined),
  ),
  celFunc("_<_", [STRING, STRING], BOOL, (a, b) => compareTexts(a, b) < 0),
  celFunc("_<=_", [STRING, STRING], BOOL, (a, b) => compareTexts(a, b) <= 0),
  celFunc("_>_", [STRING, STRING], BOOL, (a, b) => compareTexts(a, b) > 0),
  celFunc("_>=_", [STRING, STRING], BOOL, (a, b) => compareTexts(a, b) >= 0),
  celFunc("type", [DYN], CelScalar.TYPE, (value: unknown) => typeOf(value)),
  ...CEL_LIBRARY_FUNCTIONS,
  ...HISTORY_FUNCTIONS,
  ...NETWORK_FUNCTIONS,
  ...OPTIONAL_FUNCTIONS,
  ...PATTERN_FUNCTIONS,
] as unknown as CelFunction[];

/** All functions, methods and operators. */
export const CEL_FUNCTIONS: readonly CelFunction[] = [
  // If two functions have the same signature, the later one replaces the earlier one.
  ...new Map([...standardFunctions, ...overrides].map((func) => [func.id, func])).values(),
].filter(({ id }) => !REMOVED_CONVERSIONS.includes(id));

const FUNCTIONS_BY_NAME = new Map<string, CelFunction[]>();
const OVERLOADS = new Map<string, Overload[]>();
for (const func of CEL_FUNCTIONS) {
  FUNCTIONS_BY_NAME.set(func.name, [...(FUNCTIONS_BY_NAME.get(func.name) ?? []), func]);
  OVERLOADS.set(func.name, [...(OVERLOADS.get(func.name) ?? []), meterFunction(func, COSTS[func.name])]);
}

/** Returns the declarations of a function or method, for the static check. */
export function findFunctions(name: string): readonly CelFunction[] {
  return FUNCTIONS_BY_NAME.get(name) ?? [];
}

/** Returns the overloads of a function or method with this number of operands. The target of a method is an operand. */
export function findOverloads(name: string, isMethod: boolean, operands: number): readonly Overload[] {
  return (OVERLOADS.get(name) ?? []).filter(
    (overload) => overload.isMethod === isMethod && overload.kinds.length === operands,
  );
}

const TYPES: Readonly<Record<string, CelInput>> = {
  int: INT,
  uint: CelScalar.UINT,
  double: CelScalar.DOUBLE,
  bool: BOOL,
  string: STRING,
  bytes: CelScalar.BYTES,
  list: LIST_TYPE,
  map: MAP,
  null_type: CelScalar.NULL,
  optional_type: OPTIONAL,
  type: CelScalar.TYPE,
  "net.IP": IP,
  "net.CIDR": CIDR,
};

/** Returns the type with this name, such as `int` or `google.protobuf.Timestamp`, or undefined. */
export function findCelType(name: string): CelInput | undefined {
  if (Object.hasOwn(TYPES, name)) return TYPES[name];
  const message = standard.registry.getMessage(name);
  return message === undefined ? undefined : objectType(message);
}

const functionNames = [...OVERLOADS.keys()];

/** Names of all functions and methods, for suggestions. */
export const FUNCTION_NAMES: readonly string[] = functionNames.filter((name) => /^[a-z]/i.test(name));

/** Returns the argument counts that `name` accepts, as a method or as a function, in ascending order. */
export function listArities(name: string, method: boolean): number[] {
  const overloads = (OVERLOADS.get(name) ?? []).filter(({ isMethod }) => isMethod === method);
  return [...new Set(overloads.map(({ kinds }) => kinds.length - (method ? 1 : 0)))].sort((a, b) => a - b);
}
