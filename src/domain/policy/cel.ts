/**
 * CEL as conditions have it: the standard functions, each with its cost counted, so that no
 * expression and no request can hold a decision up. A cost is in steps of roughly the evaluation of
 * one node of the syntax tree; what a decision may spend is `MAX_STEPS`.
 *
 * Changed against the evaluator's own functions: `size` of text and `+` of lists take linear time;
 * `contains` is charged what its worst case takes; `matches` keeps compiled patterns; calendar fields do not depend on the time zone of the process; and
 * no error repeats a value, because reasons are kept for ever while arguments can be erased.
 */
import {
  celEnv, celError, celFunc, celList, celMethod, CelScalar, isCelError, isCelList, isCelMap, listType, mapType, objectType,
} from "@bufbuild/cel";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { RE2JS } from "@bufbuild/re2";
import { CALENDAR, wallClock } from "./cel-time.ts";

/** Steps that all conditions of one decision may take together. Measured worst case: see docs/policies.md. */
export const MAX_STEPS = 250_000;
/** Instructions of a compiled pattern: `a{500}` has 500. */
export const MAX_PATTERN = 500;
/** Characters of a text that is made a number, a time or a duration. */
const MAX_LITERAL = 128;
/** States that a pattern's automaton may keep between evaluations. */
const MAX_STATES = 1_000;

/** What one decision may still spend. */
export class Meter {
  left = MAX_STEPS;
  /** Set when something was refused; the condition's own result is then worth nothing. */
  tripped = false;

  charge(steps: number): void {
    this.left -= steps;
    if (this.left >= 0) return;
    this.tripped = true;
    throw new Error("too much work");
  }
}

const idle = new Meter();
/** The meter of the evaluation that runs: evaluation is synchronous. */
let meter = idle;

/**
 * Runs `evaluate` on the meter of a decision. Stack traces are off meanwhile: an error is a value in
 * CEL and can come up at every step, and taking its stack costs more than the step.
 */
export function onMeter<T>(on: Meter, evaluate: () => T): T {
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

/** The part of a CelFunc that is called. */
interface Callable {
  readonly name: string;
  call(id: number, target: unknown, args: unknown[]): unknown;
}

type Cost = (target: unknown, args: readonly unknown[]) => number;

const chars = (value: unknown): number => (typeof value === "string" || value instanceof Uint8Array ? value.length : 0);

/** Steps to walk a value; stops counting where the meter would trip anyway. */
function weight(value: unknown, limit: number): number {
  if (typeof value !== "object" || value === null) return 1 + (chars(value) >> 6);
  if (value instanceof Uint8Array) return 1 + (value.length >> 2);
  let sum = 1;
  if (isCelList(value)) {
    for (const item of value) if ((sum += weight(item, limit - sum)) > limit) break;
  } else if (isCelMap(value)) {
    for (const [key, item] of value) if ((sum += 2 + weight(key, limit) + weight(item, limit - sum)) > limit) break;
  }
  return sum;
}

const isContainer = (value: unknown): boolean => isCelList(value) || isCelMap(value);
const compareText: Cost = (_, [a, b]) => Math.min(chars(a), chars(b)) >> 6;
const compareDeep: Cost = (target, [a, b]) => (isContainer(a) && isContainer(b) ? weight(a, meter.left) : compareText(target, [a, b]));
/** V8 looks for a text in O(n × m): half a megabyte in a megabyte takes seconds. */
const search: Cost = (target, [needle]) => (chars(target) * Math.max(1, chars(needle))) / 512;
const literal: Cost = (_, [value]) => {
  if (chars(value) > MAX_LITERAL) throw new Error("the text is too long");
  return typeof value === "string" ? 10 : 0;
};

const COSTS: Readonly<Record<string, Cost>> = {
  "_==_": compareDeep,
  "_!=_": compareDeep,
  "_<_": compareText,
  "_<=_": compareText,
  "_>_": compareText,
  "_>=_": compareText,
  "_+_": (_, [a, b]) => (chars(a) + chars(b)) >> 4,
  "@in": (_, [value, range]) => {
    if (isCelList(range)) return isContainer(value) ? weight(range, meter.left) : range.size * (1 + (chars(value) >> 6));
    return 0;
  },
  contains: search,
  startsWith: (_, [a]) => chars(a) >> 6,
  endsWith: (_, [a]) => chars(a) >> 6,
  int: literal,
  uint: literal,
  double: literal,
  bool: literal,
  timestamp: literal,
  duration: literal,
  bytes: (_, [a]) => chars(a) >> 3,
  string: (_, [a]) => (a instanceof Uint8Array ? a.length >> 3 : 0),
};

/** The same function: charged before, and its errors without the values in them. */
function metered(func: Callable): Callable {
  const cost = COSTS[func.name];
  const refusal = `"${func.name.replaceAll(/[_@]/g, "")}" cannot take these values`;
  return Object.create(func, {
    call: {
      value(id: number, target: unknown, args: unknown[]): unknown {
        try {
          if (cost !== undefined) meter.charge(cost(target, args));
        } catch (error) {
          return celError(meter.tripped ? error : refusal, id);
        }
        const result = func.call(id, target, args);
        return isCelError(result) ? celError(refusal, id) : result;
      },
    },
  }) as Callable;
}

const { BOOL, DYN, INT, STRING } = CelScalar;
const LIST = listType(DYN);
const MAP = mapType(DYN, DYN);
const TIMESTAMP = objectType(TimestampSchema);

function countCodePoints(text: string): bigint {
  meter.charge(text.length >> 6);
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

/** Arrays behind the lists that `+` made, so that a chain of `+` stays flat. */
const flat = new WeakMap<object, unknown[]>();

function concat(a: Iterable<unknown> & object, b: Iterable<unknown> & object): ReturnType<typeof celList> {
  const left = flat.get(a) ?? [...a];
  const right = flat.get(b) ?? [...b];
  meter.charge((left.length + right.length) >> 2);
  const joined = left.concat(right);
  const list = celList(joined as Parameters<typeof celList>[0]);
  flat.set(list, joined);
  return list;
}

const MAX_PATTERNS = 10_000;
const patterns = new Map<string, { regex: RE2JS; size: number }>();

/** Throws for what is no RE2 pattern. */
export function compilePattern(source: string): { regex: RE2JS; size: number } {
  let known = patterns.get(source);
  if (known === undefined) {
    const regex = RE2JS.compile(source);
    known = { regex, size: regex.re2Input.prog.inst.length };
    if (patterns.size >= MAX_PATTERNS) patterns.clear();
    patterns.set(source, known);
  }
  return known;
}

/**
 * Steps for each character: an automaton that knows its states reads one in a tenth of a
 * microsecond, but a hostile text can make it build a new state at every character.
 */
function priceOfCharacter(instructions: number): number {
  return 1 + instructions * Math.min(0.5, Math.max(0.125, instructions / 200));
}

function matches(this: string, source: string): boolean {
  const { regex, size } = compilePattern(source);
  meter.charge(1 + this.length * priceOfCharacter(size));
  const found = regex.test(this);
  // An automaton that a hostile text has blown up is dropped: it holds memory, or has given up and is slow.
  const { dfa } = regex.re2Input;
  if (dfa !== null && (dfa.failed || dfa.stateCount > MAX_STATES)) patterns.delete(source);
  return found;
}

function calendar(name: string): unknown[] {
  const field = CALENDAR[name] as (date: Date) => number;
  const read = (stamp: { message: unknown }, zone?: string): bigint => {
    const { seconds, nanos } = stamp.message as { seconds: bigint; nanos: number };
    if (zone !== undefined) meter.charge(500);
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

const own = [
  celFunc("size", [STRING], INT, countCodePoints),
  celMethod("size", STRING, [], INT, function () {
    return countCodePoints(this);
  }),
  celFunc("_+_", [LIST, LIST], LIST, concat),
  celMethod("matches", STRING, [STRING], BOOL, matches),
  celFunc("@in", [STRING, MAP], BOOL, (key, map) => map.get(key) !== undefined),
  celFunc(RANGE, [DYN, INT], DYN, (range, nodes) => {
    if (isCelList(range) || isCelMap(range)) meter.charge(range.size * Number(nodes));
    return range;
  }),
  ...Object.keys(CALENDAR).flatMap(calendar),
] as Callable[];

const standard = [...celEnv().funcs] as unknown as Callable[];
/** Later functions of the same signature win. */
export const env = celEnv({ funcs: [...standard, ...own].map(metered) as never });

/** Every function and method a condition can call by name, for suggestions. */
export const FUNCTION_NAMES: readonly string[] = [...new Set([...standard, ...own].map(({ name }) => name))].filter((name) => /^[a-z]/i.test(name));

/** Numbers of arguments that `name` takes, as a method or as a function, smallest first. */
export function arities(name: string, method: boolean): number[] {
  const found = [...env.funcs].filter((func) => func.name === name && (func.target !== undefined) === method);
  return [...new Set(found.map((func) => func.arguments.length))].sort((a, b) => a - b);
}
