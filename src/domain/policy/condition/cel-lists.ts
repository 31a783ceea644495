/** List concatenation with a shared backing array, and metered equality of lists and maps. */
import { isCelMap, isCelType, isCelUint, type CelList } from "@bufbuild/cel";
import { isReflectMessage } from "@bufbuild/protobuf/reflect";
import { chargeSteps, valueLength } from "./cel-meter.ts";
import { nanosOf } from "./cel-time.ts";
import { CelCidr, CelIp, CelOptional, isList } from "./cel-values.ts";

/**
 * Backing array of each concatenated list. A list shares the array with the list that it extends, but has its own size.
 */
const arrays = new WeakMap<object, unknown[]>();

/**
 * Concatenates two lists.
 * @param pay a function that charges the cost, given the number of copied elements and the total
 */
export function concatLists(left: CelList, right: CelList, pay: (copied: number, all: number) => void): CelList {
  const all = left.size + right.size;
  const backing = arrays.get(left);
  const grows = backing !== undefined && backing.length === left.size;
  pay(grows ? right.size : all, all);
  const array = grows ? backing : [...left];
  // This does not change earlier lists that share the array, because each has its own size.
  for (const item of right) array.push(item);
  const list = new ArrayPrefix(array, all) as unknown as CelList;
  arrays.set(list, array);
  return list;
}

/** Returns a list of these values. */
export function toCelList(items: readonly unknown[]): CelList {
  return new ArrayPrefix(items, items.length) as unknown as CelList;
}

const LIST = Symbol.for("@bufbuild/cel/list");

/** The first `size` elements of a shared, growing array. */
class ArrayPrefix {
  readonly [LIST] = {};
  readonly size: number;
  private readonly array: readonly unknown[];

  constructor(array: readonly unknown[], size: number) {
    this.array = array;
    this.size = size;
  }
  get(index: number): unknown {
    return index >= 0 && index < this.size ? this.array[index] : undefined;
  }
  *values(): Generator<unknown> {
    for (let i = 0; i < this.size; i++) yield this.array[i];
  }
  [Symbol.iterator](): Generator<unknown> {
    return this.values();
  }
}

/** Compares two values by CEL's rules. Charges one step for each compared pair. */
export function equalValues(a: unknown, b: unknown): boolean {
  chargeSteps(1);
  if (a === b) return true;
  if (a instanceof CelOptional && b instanceof CelOptional) return equalOptionals(a, b);
  // In CEL, an optional never equals another value, so a comparison with a list of forbidden values would never match.
  // An error makes the policy deny instead.
  if (a instanceof CelOptional || b instanceof CelOptional)
    throw new Error("an optional value is compared with another value; use orValue");
  if (isNetworkValue(a) || isNetworkValue(b)) return equalNetworkValues(a, b);
  if (isList(a)) return isList(b) && equalLists(a, b);
  if (isCelMap(a)) return isCelMap(b) && equalMaps(a, b);
  const [x, y] = [isCelUint(a) ? a.value : a, isCelUint(b) ? b.value : b];
  if (isNumber(x) && isNumber(y)) {
    // `==` compares bigint and number mathematically.
    // eslint-disable-next-line eqeqeq
    return x == y;
  }
  chargeSteps(Math.min(valueLength(a), valueLength(b)) >> 6);
  if (x instanceof Uint8Array)
    return y instanceof Uint8Array && x.length === y.length && x.every((candidate, i) => candidate === y[i]);
  // Timestamps or durations; conditions cannot create other messages.
  if (isReflectMessage(x))
    return isReflectMessage(y) && x.desc.typeName === y.desc.typeName && nanosOf(x) === nanosOf(y);
  if (typeof x === "object" && x !== null && isCelType(x as never))
    return (
      isCelType(y as never) &&
      (x as NamedType).kind === (y as NamedType).kind &&
      (x as NamedType).name === (y as NamedType).name
    );
  return x === y;
}

interface NamedType {
  kind: string;
  name: string;
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

const isNetworkValue = (value: unknown): value is CelIp | CelCidr => value instanceof CelIp || value instanceof CelCidr;

/**
 * Compares addresses or networks. Throws if one of the values is a string, because the comparison of a forbidden address
 * with its text would never match.
 */
function equalNetworkValues(a: unknown, b: unknown): boolean {
  if (typeof a === "string" || typeof b === "string")
    throw new Error("an address is compared with a string; use ip(), cidr() or string()");
  return isNetworkValue(a) && isNetworkValue(b) && a.constructor === b.constructor && a.text === b.text;
}

function equalOptionals(a: CelOptional, b: CelOptional): boolean {
  return a.value === undefined || b.value === undefined ? a.value === b.value : equalValues(a.value, b.value);
}

function equalLists(a: CelList, b: CelList): boolean {
  if (a.size !== b.size) return false;
  for (let i = 0; i < a.size; i++) if (!equalValues(a.get(i), b.get(i))) return false;
  return true;
}

function equalMaps(a: ReadonlyMap<unknown, unknown>, b: ReadonlyMap<unknown, unknown>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) {
    chargeSteps(2 + (valueLength(key) >> 6));
    const other = b.get(key);
    if (other === undefined || !equalValues(value, other)) return false;
  }
  return true;
}

/** Charges for the elements of a list and returns them. */
export function elementsOf(list: CelList): unknown[] {
  chargeSteps(1 + list.size);
  return [...list];
}

/** Charges for the characters of a string and returns its code points. */
export function codePointsOf(text: string): number[] {
  chargeSteps(1 + (text.length >> 3));
  return Array.from(text, (character) => character.codePointAt(0) as number);
}

/** Compares two strings, given as code points. Returns a negative number, zero or a positive number. */
export function comparePoints(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((point, i) => point !== b[i]);
  chargeSteps(1 + ((at < 0 ? a.length : at) >> 3));
  return at < 0 ? a.length - b.length : (a[at] as number) - (b[at] ?? -1);
}

export function listContains(value: unknown, list: CelList): boolean {
  for (let i = 0; i < list.size; i++) if (equalValues(list.get(i), value)) return true;
  return false;
}
