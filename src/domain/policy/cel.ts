/**
 * CEL as conditions have it, in two editions. A set says by its format which one its conditions are evaluated in, so that
 * what was decided comes out the same when it is decided again, down to the step.
 *
 * The first edition has the evaluator's own conversions; what it charges is left as it was. The second converts as CEL
 * does (cel-conversions.ts), compares texts by code points, and charges every function by what it does.
 * Changed in both: `size` of text and `+` of lists take linear time; `matches` keeps compiled patterns; calendar fields
 * do not depend on the time zone of the process; and no error repeats a value.
 */
import {
  celEnv,
  celFunc,
  celMethod,
  CelScalar,
  isCelList,
  isCelMap,
  listType,
  mapType,
  objectType,
  type CelList,
} from "@bufbuild/cel";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { CONVERSIONS, NO_CONVERSIONS } from "./cel-conversions.ts";
import { concatLists, inList, sameValue, weight } from "./cel-lists.ts";
import { charge, lengthOf, metered, stepsLeft, type Callable, type Cost } from "./cel-meter.ts";
import { matches1, matches2 } from "./cel-patterns.ts";
import { CALENDAR, wallClock } from "./cel-time.ts";

export interface CelEdition {
  readonly env: ReturnType<typeof celEnv>;
  /** Steps that all conditions of one decision may take together. Measured worst case: see docs/policies.md. */
  readonly maxSteps: number;
}

/** Characters of a text that is made a number, a time or a duration. */
const MAX_LITERAL = 128;

const literal: Cost = (_, [value]) => {
  if (lengthOf(value) > MAX_LITERAL) throw new Error("the text is too long");
  return typeof value === "string" ? 10 : 0;
};
const isContainer = (value: unknown): boolean => isCelList(value) || isCelMap(value);

const compareText: Cost = (_, [a, b]) => Math.min(lengthOf(a), lengthOf(b)) >> 6;
const compareDeep: Cost = (target, [a, b]) =>
  isContainer(a) && isContainer(b) ? weight(a, stepsLeft()) : compareText(target, [a, b]);

const COSTS_1: Readonly<Record<string, Cost>> = {
  "_==_": compareDeep,
  "_!=_": compareDeep,
  "_<_": compareText,
  "_<=_": compareText,
  "_>_": compareText,
  "_>=_": compareText,
  "_+_": (_, [a, b]) => (lengthOf(a) + lengthOf(b)) >> 4,
  "@in": (_, [value, range]) => {
    if (isCelList(range))
      return isContainer(value) ? weight(range, stepsLeft()) : range.size * (1 + (lengthOf(value) >> 6));
    return 0;
  },
  // V8 looks for a text in O(n × m): half a megabyte in a megabyte takes seconds.
  contains: (target, [needle]) => (lengthOf(target) * Math.max(1, lengthOf(needle))) / 512,
  startsWith: (_, [a]) => lengthOf(a) >> 6,
  endsWith: (_, [a]) => lengthOf(a) >> 6,
  int: literal,
  uint: literal,
  double: literal,
  bool: literal,
  timestamp: literal,
  duration: literal,
  bytes: (_, [a]) => lengthOf(a) >> 3,
  string: (_, [a]) => (a instanceof Uint8Array ? a.length >> 3 : 0),
};

const ordered: Cost = (_, [a, b]) => 1 + (Math.min(lengthOf(a), lengthOf(b)) >> 4);
/** Messages (times, durations) are made anew by each function that gives one. */
const arithmetic: Cost = (_, [a, b]) =>
  typeof a === "object" || typeof b === "object"
    ? 6 + ((lengthOf(a) + lengthOf(b)) >> 4)
    : (lengthOf(a) + lengthOf(b)) >> 4;
const affix: Cost = (target, [a]) => 1 + (Math.min(lengthOf(target), lengthOf(a)) >> 4);

const COSTS_2: Readonly<Record<string, Cost>> = {
  "_<_": ordered,
  "_<=_": ordered,
  "_>_": ordered,
  "_>=_": ordered,
  "_+_": arithmetic,
  "_-_": arithmetic,
  "@in": (_, [key]) => lengthOf(key) >> 6,
  contains: (target, [needle]) => {
    const [n, m] = [lengthOf(target), lengthOf(needle)];
    return m > n ? 1 : 1 + ((n - m + 1) * Math.max(1, m)) / 256 + (n + m) / 64;
  },
  startsWith: affix,
  endsWith: affix,
  int: literal,
  uint: literal,
  double: literal,
  bool: literal,
  timestamp: (target, args) => 10 + literal(target, args),
  duration: (target, args) => 10 + literal(target, args) + (lengthOf(args[0]) >> 1),
  bytes: (_, [a]) => lengthOf(a) >> 3,
  string: (_, [a]) => (typeof a === "object" ? 15 + (lengthOf(a) >> 3) : 2),
};

const { BOOL, DYN, INT, STRING } = CelScalar;
const LIST = listType(DYN);
const MAP = mapType(DYN, DYN);
const TIMESTAMP = objectType(TimestampSchema);

function countCodePoints(text: string): bigint {
  charge(text.length >> 6);
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

function calendar(name: string): unknown[] {
  const field = CALENDAR[name] as (date: Date) => number;
  const read = (stamp: { message: unknown }, zone?: string): bigint => {
    const { seconds, nanos } = stamp.message as { seconds: bigint; nanos: number };
    if (zone !== undefined) charge(500);
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

/** Stands around the range of every comprehension: its elements are paid for before the first is looked at. */
export const RANGE = "@range";

const standard = [...celEnv().funcs] as unknown as Callable[];

const own1 = [
  celFunc("size", [STRING], INT, countCodePoints),
  celMethod("size", STRING, [], INT, function () {
    return countCodePoints(this);
  }),
  celFunc("_+_", [LIST, LIST], LIST, (a, b) => concatLists(a, b, (_, all) => charge(all >> 2))),
  celMethod("matches", STRING, [STRING], BOOL, matches1),
  celFunc("@in", [STRING, MAP], BOOL, (key, map) => map.get(key) !== undefined),
  celFunc(RANGE, [DYN, INT], DYN, (range, nodes) => {
    if (isCelList(range) || isCelMap(range)) charge(range.size * Number(nodes));
    return range;
  }),
  ...Object.keys(CALENDAR).flatMap(calendar),
] as Callable[];

/** Numbers of keys are counted once for each map, but counted. */
function sizeOfMap(map: { size: number }): bigint {
  charge(map.size >> 4);
  return BigInt(map.size);
}

/** Below zero, zero or above, by code points: UTF-16 puts U+10000 before U+E000. */
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

const own2 = [
  ...own1,
  ...CONVERSIONS,
  celMethod("matches", STRING, [STRING], BOOL, matches2),
  celFunc("size", [MAP], INT, sizeOfMap),
  celMethod("size", MAP, [], INT, function () {
    return sizeOfMap(this);
  }),
  celFunc("_+_", [LIST, LIST], LIST, (a, b) =>
    concatLists(a as CelList, b as CelList, (copied) => charge(1 + (copied >> 1))),
  ),
  celFunc("_==_", [DYN, DYN], BOOL, sameValue),
  celFunc("_!=_", [DYN, DYN], BOOL, (a, b) => !sameValue(a, b)),
  celFunc("@in", [DYN, LIST], BOOL, (value, list) => inList(value, list as CelList)),
  ...[STRING, INT, CelScalar.UINT, CelScalar.DOUBLE, BOOL].map((key) =>
    celFunc("@in", [key, MAP], BOOL, (name, map) => map.get(name as never) !== undefined),
  ),
  celFunc("_<_", [STRING, STRING], BOOL, (a, b) => compareTexts(a, b) < 0),
  celFunc("_<=_", [STRING, STRING], BOOL, (a, b) => compareTexts(a, b) <= 0),
  celFunc("_>_", [STRING, STRING], BOOL, (a, b) => compareTexts(a, b) > 0),
  celFunc("_>=_", [STRING, STRING], BOOL, (a, b) => compareTexts(a, b) >= 0),
] as unknown as Callable[];

const functions = [...standard, ...own2].filter(({ id }) => !NO_CONVERSIONS.includes(id));
const names = [...new Set(functions.map(({ name }) => name))];

/** A function that accepts no value, in place of one that the evaluator has and CEL does not. */
const absent = (func: Callable): Callable => Object.create(func, { call: { value: () => undefined } }) as Callable;

/**
 * Tried last: where no function of the name takes the values the result is an error, which costs more than most
 * results.
 */
function mismatch(name: string): Callable {
  return {
    name,
    id: `${name}(mismatch)`,
    target: undefined,
    arguments: [],
    call: () => {
      charge(8);
      return undefined;
    },
  };
}

/** Later functions of the same signature win. */
const edition = (funcs: readonly Callable[], maxSteps: number): CelEdition => ({
  env: celEnv({ funcs: funcs as never }),
  maxSteps,
});

export const CEL_1 = edition(
  [...standard, ...own1].map((func) => metered(func, COSTS_1[func.name], true)),
  250_000,
);
export const CEL_2 = edition(
  [
    ...functions.map((func) => metered(func, COSTS_2[func.name], false)),
    ...standard.filter(({ id }) => NO_CONVERSIONS.includes(id)).map(absent),
    ...names.map(mismatch),
  ],
  100_000,
);

/** Every function and method a condition can call by name, for suggestions. */
export const FUNCTION_NAMES: readonly string[] = names.filter((name) => /^[a-z]/i.test(name));

/** Numbers of arguments that `name` takes, as a method or as a function, smallest first. */
export function arities(name: string, method: boolean): number[] {
  const overloads = functions.filter((func) => func.name === name && (func.target !== undefined) === method);
  return [...new Set(overloads.map((func) => func.arguments.length))].sort((a, b) => a - b);
}
