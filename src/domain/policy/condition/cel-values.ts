/**
 * Wraps JSON for CEL and converts members lazily. Only own keys exist, so no key can read a prototype. Unlike in the
 * library's own map, a key with the value null exists.
 */
import { isCelList, type CelInput, type CelList } from "@bufbuild/cel";
import type { JsonObject, JsonValue } from "../../json.ts";

/** Symbols by which the library recognizes foreign maps and lists. */
const MAP = Symbol.for("@bufbuild/cel/map");
const LIST = Symbol.for("@bufbuild/cel/list");

/** Converts integers to CEL ints, and other numbers to doubles. */
export function toCelValue(value: JsonValue): CelInput {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value !== "object" || value === null) return value;
  return (Array.isArray(value) ? new JsonList(value) : new JsonMap(value)) as unknown as CelInput;
}

/** Cached keys of large objects. Listing and sorting keys is slow, and each field access wraps the object again. */
const names = new WeakMap<JsonObject, readonly string[]>();
const LARGE = 32;

/**
 * Returns the keys in the order of canonical JSON, in which requests and facts are stored. A replay then visits them in
 * the same order and takes the same steps, however the client ordered them.
 */
function namesOf(object: JsonObject): readonly string[] {
  let keys = names.get(object);
  if (keys === undefined) {
    keys = Object.keys(object).sort();
    if (keys.length > LARGE) names.set(object, keys);
  }
  return keys;
}

/** A CelMap over a JSON object. */
export class JsonMap {
  readonly [MAP] = {};
  private readonly object: JsonObject;

  constructor(object: JsonObject) {
    this.object = object;
  }
  get size(): number {
    return namesOf(this.object).length;
  }
  has(key: unknown): boolean {
    return typeof key === "string" && Object.hasOwn(this.object, key);
  }
  get(key: unknown): CelInput | undefined {
    return typeof key === "string" && Object.hasOwn(this.object, key)
      ? toCelValue(this.object[key] as JsonValue)
      : undefined;
  }
  keys(): IterableIterator<string> {
    return namesOf(this.object).values();
  }
  *values(): Generator<CelInput> {
    for (const key of this.keys()) yield toCelValue(this.object[key] as JsonValue);
  }
  *entries(): Generator<[string, CelInput]> {
    for (const key of this.keys()) yield [key, toCelValue(this.object[key] as JsonValue)];
  }
  [Symbol.iterator](): Generator<[string, CelInput]> {
    return this.entries();
  }
  forEach(callback: (value: CelInput, key: string, map: this) => void, self?: unknown): void {
    for (const [key, value] of this.entries()) callback.call(self, value, key, this);
  }
}

/** A CelList over a JSON array. */
export class JsonList {
  readonly [LIST] = {};
  private readonly array: readonly JsonValue[];

  constructor(array: readonly JsonValue[]) {
    this.array = array;
  }
  get size(): number {
    return this.array.length;
  }
  get(index: number): CelInput | undefined {
    return Number.isInteger(index) && index >= 0 && index < this.array.length
      ? toCelValue(this.array[index] as JsonValue)
      : undefined;
  }
  *values(): Generator<CelInput> {
    for (const value of this.array) yield toCelValue(value);
  }
  [Symbol.iterator](): Generator<CelInput> {
    return this.values();
  }
}

/**
 * An optional value. It looks like a list with one element or none to the library, because the library accepts only
 * values that it recognizes. `isList` distinguishes optionals from lists.
 */
export class CelOptional {
  readonly [LIST] = {};
  /** Undefined if there is no value. */
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
  get size(): number {
    return this.value === undefined ? 0 : 1;
  }
  get(index: number): unknown {
    return index === 0 ? this.value : undefined;
  }
  *[Symbol.iterator](): Generator<unknown> {
    if (this.value !== undefined) yield this.value;
  }
}

/** The optional without a value. */
export const OPTIONAL_NONE = new CelOptional(undefined);

/** Returns true if a value is a list, and not an optional. */
export const isList = (value: unknown): value is CelList => isCelList(value) && !(value instanceof CelOptional);
