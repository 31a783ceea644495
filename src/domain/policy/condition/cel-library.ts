/**
 * Functions on strings, lists, sets and numbers, with the names that the CEL extensions of cel-go use (strings, lists,
 * sets, math, encoders). Positions count code points. The functions on strings, lists and sets charge for the elements
 * and characters that they visit.
 */
import { toBase64 } from "../../hash.ts";
import { celFunc, celMethod, CelScalar, celUint, listType, type CelList } from "@bufbuild/cel";
import { AGGREGATE_FUNCTIONS, compareNumbers, isNumber } from "./cel-aggregates.ts";
import { MAX_INT } from "./cel-conversions.ts";
import { FORMAT_FUNCTIONS } from "./cel-format.ts";
import { codePointsOf, comparePoints, elementsOf, equalValues, listContains, toCelList } from "./cel-lists.ts";
import { chargeSteps } from "./cel-meter.ts";
import { isList } from "./cel-values.ts";

const { BOOL, BYTES, DOUBLE, DYN, INT, STRING, UINT } = CelScalar;
const LIST_TYPE = listType(DYN);
const TEXTS = listType(STRING);

/** Charges for a visit to each character of a string. */
const scan = (text: string): void => chargeSteps(1 + (text.length >> 5));

/** Splits a string into its code points. */
function pointsOf(text: string): string[] {
  chargeSteps(1 + (text.length >> 3));
  return Array.from(text);
}

/** Returns the index as a number from 0 to `most`. Throws for other values. */
function toPosition(index: bigint, most: number): number {
  const value = Number(index);
  if (value < 0 || value > most) throw new Error("the position is outside");
  return value;
}

function charAt(this: string, index: bigint): string {
  const points = pointsOf(this);
  return points[toPosition(index, points.length)] ?? "";
}

function substring(this: string, from: bigint, to?: bigint): string {
  const points = pointsOf(this);
  const end = to === undefined ? points.length : toPosition(to, points.length);
  return points.slice(toPosition(from, end), end).join("");
}

function indexOf(this: string, part: string, from = 0n): bigint {
  const points = pointsOf(this);
  const start = points.slice(0, toPosition(from, points.length)).join("").length;
  chargeSteps(searchCost(this, part));
  const found = this.indexOf(part, start);
  return found < 0 ? -1n : BigInt(pointsOf(this.slice(0, found)).length);
}

function lastIndexOf(this: string, part: string, from?: bigint): bigint {
  const points = pointsOf(this);
  const start = from === undefined ? this.length : points.slice(0, toPosition(from, points.length)).join("").length;
  chargeSteps(searchCost(this, part));
  const found = this.lastIndexOf(part, start);
  return found < 0 ? -1n : BigInt(pointsOf(this.slice(0, found)).length);
}

/** Returns the cost of the slowest search algorithm, which compares `part` at each position. */
const searchCost = (text: string, part: string): number =>
  1 + Math.ceil((Math.max(1, text.length - part.length) * Math.max(1, part.length)) / 256);

function changeCase(text: string, pattern: RegExp, change: (characters: string) => string): string {
  chargeSteps(1 + (text.length >> 3));
  return text.replaceAll(pattern, change);
}

function replace(this: string, part: string, by: string, count = -1n): string {
  const chunks = splitText(this, part, count < 0n ? -1 : Number(count) + 1);
  chargeSteps(((chunks.length - 1) * by.length) >> 5);
  return chunks.join(by);
}

/** Splits into at most `most` parts; -1 is unlimited. An empty separator splits between code points. */
function splitText(text: string, separator: string, most: number): string[] {
  scan(text);
  if (most === 0) return [];
  if (separator === "") {
    const points = pointsOf(text);
    chargeSteps(points.length);
    return most < 0 || points.length <= most ? points : [...points.slice(0, most - 1), points.slice(most - 1).join("")];
  }
  chargeSteps(searchCost(text, separator));
  const chunks: string[] = [];
  let start = 0;
  for (let at = text.indexOf(separator); at >= 0 && chunks.length + 1 !== most; at = text.indexOf(separator, start)) {
    chargeSteps(1);
    chunks.push(text.slice(start, at));
    start = at + separator.length;
  }
  chunks.push(text.slice(start));
  return chunks;
}

function split(this: string, separator: string, most = -1n): unknown {
  return toCelList(splitText(this, separator, Number(most)));
}

/** The White_Space characters of Unicode. `String.prototype.trim` removes a different set. */
const SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

function trim(this: string): string {
  scan(this);
  let [start, end] = [0, this.length];
  while (start < end && SPACE.test(this[start] as string)) start++;
  while (end > start && SPACE.test(this[end - 1] as string)) end--;
  chargeSteps((this.length - (end - start)) >> 2);
  return this.slice(start, end);
}

function reverseText(this: string): string {
  // Charge extra, because joining the code points takes longer than reading them.
  chargeSteps(this.length >> 2);
  return pointsOf(this).reverse().join("");
}

function join(this: CelList, separator = ""): string {
  const texts = [...elementsOf(this)].map((element) => {
    if (typeof element !== "string") throw new Error("an element is not a string");
    chargeSteps((element.length + separator.length) >> 5);
    return element;
  });
  return texts.join(separator);
}

function slice(this: CelList, from: bigint, to: bigint): unknown {
  const end = toPosition(to, this.size);
  return toCelList(elementsOf(this).slice(toPosition(from, end), end));
}

/** Replaces each list within the list by its elements, down to `depth` levels. */
function flatten(this: CelList, depth = 1n): unknown {
  if (depth < 0n) throw new Error("the depth is negative");
  const flat = (list: CelList, left: bigint): unknown[] =>
    elementsOf(list).flatMap((element) => (left > 0n && isList(element) ? flat(element, left - 1n) : [element]));
  return toCelList(flat(this, depth));
}

function distinct(this: CelList): unknown {
  const found: unknown[] = [];
  for (const element of elementsOf(this)) if (!found.some((other) => equalValues(element, other))) found.push(element);
  return toCelList(found);
}

/** Sorts a list of numbers, or a list of strings by code points. Throws for a list with other or mixed values. */
function sort(this: CelList): unknown {
  const elements = elementsOf(this);
  chargeSteps(Math.ceil(elements.length * Math.log2(elements.length + 1)));
  if (elements.every(isNumber)) return toCelList(elements.sort(compareNumbers));
  if (!elements.every((element) => typeof element === "string")) throw new Error("these cannot be sorted");
  const keys = new Map(elements.map((text) => [text, codePointsOf(text)]));
  return toCelList(elements.sort((a, b) => comparePoints(keys.get(a) ?? [], keys.get(b) ?? [])));
}

function reverseList(this: CelList): unknown {
  return toCelList(elementsOf(this).reverse());
}

function range(count: bigint): unknown {
  chargeSteps(1 + Math.max(0, Number(count)));
  return toCelList(Array.from({ length: Math.max(0, Number(count)) }, (_, i) => BigInt(i)));
}

/** Returns true if `list` contains each element of `part`. */
const containsAll = (list: CelList, part: CelList): boolean =>
  elementsOf(part).every((element) => listContains(element, list));

function absoluteValue(value: bigint): bigint {
  const positive = value < 0n ? -value : value;
  if (positive > MAX_INT) throw new Error("the number is too large");
  return positive;
}

/** Number of bits in an int. A shift by this number or more results in 0. */
const BITS = 64n;

/**
 * Shifts within 64 bits: to the left, or to the right if `by` is negative. A shift to the right fills with zeros, even
 * for a negative value.
 */
function shift(value: bigint, by: bigint, wrap: (bits: bigint) => bigint): bigint {
  if (by <= -BITS || by >= BITS) return 0n;
  const bits = BigInt.asUintN(64, value);
  return wrap(by < 0n ? bits >> -by : bits << by);
}

const toInt64 = (bits: bigint): bigint => BigInt.asIntN(64, bits);
const toUint64 = (bits: bigint): bigint => BigInt.asUintN(64, bits);

/** Declares a function on the bits of two ints, or of two uints. */
const bitwiseFunction = (name: string, apply: (a: bigint, b: bigint) => bigint): unknown[] => [
  celFunc(name, [INT, INT], INT, apply),
  celFunc(name, [UINT, UINT], UINT, (a, b) => celUint(apply(a.value, b.value))),
];

/**
 * Declares a shift of an int or a uint.
 * @param direction 1 for the left, -1 for the right
 */
function bitShift(name: string, direction: 1n | -1n): unknown[] {
  const by = (offset: bigint): bigint => {
    if (offset < 0n) throw new Error("the offset is negative");
    return offset * direction;
  };
  return [
    celFunc(name, [INT, INT], INT, (value, offset) => shift(value, by(offset), toInt64)),
    celFunc(name, [UINT, INT], UINT, (value, offset) => celUint(shift(value.value, by(offset), toUint64))),
  ];
}

/** Rounds halves away from zero. */
const roundHalfAway = (value: number): number => Math.sign(value) * Math.round(Math.abs(value));

function encodeBase64(bytes: Uint8Array): string {
  chargeSteps(1 + (bytes.length >> 2));
  return toBase64(bytes);
}

function decodeBase64(text: string): Uint8Array {
  chargeSteps(1 + (text.length >> 2));
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw new Error("the string is not base64");
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

export const CEL_LIBRARY_FUNCTIONS: readonly unknown[] = [
  celMethod("charAt", STRING, [INT], STRING, charAt),
  celMethod("substring", STRING, [INT], STRING, substring),
  celMethod("substring", STRING, [INT, INT], STRING, substring),
  celMethod("indexOf", STRING, [STRING], INT, indexOf),
  celMethod("indexOf", STRING, [STRING, INT], INT, indexOf),
  celMethod("lastIndexOf", STRING, [STRING], INT, lastIndexOf),
  celMethod("lastIndexOf", STRING, [STRING, INT], INT, lastIndexOf),
  celMethod("lowerAscii", STRING, [], STRING, function () {
    return changeCase(this, /[A-Z]+/g, (characters) => characters.toLowerCase());
  }),
  celMethod("upperAscii", STRING, [], STRING, function () {
    return changeCase(this, /[a-z]+/g, (characters) => characters.toUpperCase());
  }),
  celMethod("replace", STRING, [STRING, STRING], STRING, replace),
  celMethod("replace", STRING, [STRING, STRING, INT], STRING, replace),
  celMethod("split", STRING, [STRING], TEXTS, split as never),
  celMethod("split", STRING, [STRING, INT], TEXTS, split as never),
  celMethod("trim", STRING, [], STRING, trim),
  celMethod("reverse", STRING, [], STRING, reverseText),
  celMethod("join", LIST_TYPE, [], STRING, join as never),
  celMethod("join", LIST_TYPE, [STRING], STRING, join as never),
  celMethod("slice", LIST_TYPE, [INT, INT], LIST_TYPE, slice as never),
  celMethod("flatten", LIST_TYPE, [], LIST_TYPE, flatten as never),
  celMethod("flatten", LIST_TYPE, [INT], LIST_TYPE, flatten as never),
  celMethod("distinct", LIST_TYPE, [], LIST_TYPE, distinct as never),
  celMethod("sort", LIST_TYPE, [], LIST_TYPE, sort as never),
  celMethod("reverse", LIST_TYPE, [], LIST_TYPE, reverseList as never),
  celFunc("lists.range", [INT], LIST_TYPE, range as never),
  celFunc("sets.contains", [LIST_TYPE, LIST_TYPE], BOOL, containsAll as never),
  celFunc(
    "sets.equivalent",
    [LIST_TYPE, LIST_TYPE],
    BOOL,
    ((a: CelList, b: CelList) => containsAll(a, b) && containsAll(b, a)) as never,
  ),
  celFunc("sets.intersects", [LIST_TYPE, LIST_TYPE], BOOL, ((a: CelList, b: CelList) =>
    elementsOf(b).some((element) => listContains(element, a))) as never),
  celFunc("math.abs", [INT], INT, absoluteValue),
  celFunc("math.abs", [UINT], UINT, (value) => value),
  celFunc("math.abs", [DOUBLE], DOUBLE, Math.abs),
  celFunc("math.ceil", [DOUBLE], DOUBLE, Math.ceil),
  celFunc("math.floor", [DOUBLE], DOUBLE, Math.floor),
  celFunc("math.round", [DOUBLE], DOUBLE, roundHalfAway),
  celFunc("math.trunc", [DOUBLE], DOUBLE, Math.trunc),
  celFunc("math.sign", [INT], INT, (value) => (value > 0n ? 1n : value < 0n ? -1n : 0n)),
  celFunc("math.sign", [UINT], UINT, ({ value }) => celUint(value > 0n ? 1n : 0n)),
  celFunc("math.sign", [DOUBLE], DOUBLE, Math.sign),
  celFunc("math.isNaN", [DOUBLE], BOOL, Number.isNaN),
  celFunc("math.isInf", [DOUBLE], BOOL, (value) => Math.abs(value) === Infinity),
  celFunc("math.isFinite", [DOUBLE], BOOL, Number.isFinite),
  celFunc("math.sqrt", [DOUBLE], DOUBLE, Math.sqrt),
  celFunc("math.sqrt", [INT], DOUBLE, (value) => Math.sqrt(Number(value))),
  celFunc("math.sqrt", [UINT], DOUBLE, ({ value }) => Math.sqrt(Number(value))),
  ...bitwiseFunction("math.bitAnd", (a, b) => a & b),
  ...bitwiseFunction("math.bitOr", (a, b) => a | b),
  ...bitwiseFunction("math.bitXor", (a, b) => a ^ b),
  celFunc("math.bitNot", [INT], INT, (value) => ~value),
  celFunc("math.bitNot", [UINT], UINT, ({ value }) => celUint(toUint64(~value))),
  ...bitShift("math.bitShiftLeft", 1n),
  ...bitShift("math.bitShiftRight", -1n),
  celFunc("base64.encode", [BYTES], STRING, encodeBase64),
  celFunc("base64.decode", [STRING], BYTES, decodeBase64),
  ...AGGREGATE_FUNCTIONS,
  ...FORMAT_FUNCTIONS,
];
