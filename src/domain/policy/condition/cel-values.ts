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
 * A value of a type that the library lacks. It implements the interface of a list, because the library accepts only
 * known types. `isList` distinguishes it from lists.
 */
abstract class ForeignValue {
  readonly [LIST] = {};
}

/** An optional value. Implements the interface of a list with at most one element. */
export class CelOptional extends ForeignValue {
  /** Undefined if there is no value. */
  readonly value: unknown;

  constructor(value: unknown) {
    super();
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

/** A value of the type `net.IP`. `value` is the address as a number of 32 or 128 bits. */
export class CelIp extends ForeignValue {
  readonly bits: 32 | 128;
  readonly value: bigint;
  /** The canonical text, as RFC 5952 defines it. */
  readonly text: string;

  constructor(bits: 32 | 128, value: bigint) {
    super();
    this.bits = bits;
    this.value = value;
    this.text = formatAddress(bits, value);
  }
}

/** A value of the type `net.CIDR`. The address can have bits after the prefix. */
export class CelCidr extends ForeignValue {
  readonly address: CelIp;
  readonly prefix: number;
  readonly text: string;

  constructor(address: CelIp, prefix: number) {
    super();
    this.address = address;
    this.prefix = prefix;
    this.text = `${address.text}/${prefix}`;
  }
}

function formatAddress(bits: 32 | 128, value: bigint): string {
  const width = bits === 32 ? 8n : 16n;
  const count = bits === 32 ? 4 : 8;
  const groups = Array.from({ length: count }, (_, i) =>
    Number((value >> (width * BigInt(count - 1 - i))) & ((1n << width) - 1n)),
  );
  if (bits === 32) return groups.join(".");
  const text = groups.map((group) => group.toString(16)).join(":");
  // RFC 5952: the longest run of at least two zero groups becomes "::"; of equally long runs, the first.
  const runs = [...text.matchAll(/(?:^|:)0(?::0)+(?=:|$)/g)].sort((a, b) => b[0].length - a[0].length);
  const [longest] = runs;
  if (longest === undefined) return text;
  return `${text.slice(0, longest.index)}::${text.slice(longest.index + longest[0].length + 1)}`;
}

/** Returns true if a value is a list, and not a value of another type that looks like one. */
export const isList = (value: unknown): value is CelList => isCelList(value) && !(value instanceof ForeignValue);
