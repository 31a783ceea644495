/** Reads members and elements of CEL values. A read that fails returns a CelFailure. */
import { isCelMap, isCelUint } from "@bufbuild/cel";
import { isReflectMessage } from "@bufbuild/protobuf/reflect";
import { CelFailure } from "./cel-failure.ts";
import { CelOptional, isList, JsonMap, OPTIONAL_NONE } from "./cel-values.ts";

/** Returns the value of `owner.name`. */
export function readMember(owner: unknown, name: string): unknown {
  if (owner instanceof CelOptional) return readOptionalMember(owner, name);
  const value = owner instanceof JsonMap || isCelMap(owner) ? owner.get(name) : fieldOfTime(owner, name);
  return value === undefined ? new CelFailure(`field not found: ${name}`) : value;
}

/**
 * Returns the optional value of `owner.?name`, and of `owner.name` if the owner is optional itself. Fails if the owner
 * cannot have members.
 */
export function readOptionalMember(owner: unknown, name: string): CelOptional | CelFailure {
  if (owner instanceof CelOptional)
    return owner.value === undefined ? OPTIONAL_NONE : readOptionalMember(owner.value, name);
  if (isCelMap(owner)) return optionalOf(owner.get(name));
  const value = fieldOfTime(owner, name);
  return value === undefined ? new CelFailure("unresolved attribute") : new CelOptional(value);
}

/** Returns the optional value of `owner[?key]`, and of `owner[key]` if the owner is optional itself. */
export function readOptionalElement(owner: unknown, key: unknown): CelOptional | CelFailure {
  if (owner instanceof CelOptional)
    return owner.value === undefined ? OPTIONAL_NONE : readOptionalElement(owner.value, key);
  if (typeof key === "string") return readOptionalMember(owner, key);
  if (!isList(owner) && !isCelMap(owner)) return new CelFailure("unresolved attribute");
  const index = toIndex(key);
  return index instanceof CelFailure ? index : optionalOf(elementAt(owner, index));
}

const optionalOf = (value: unknown): CelOptional => (value === undefined ? OPTIONAL_NONE : new CelOptional(value));

/** Returns the value of `owner[key]`. */
export function readElement(owner: unknown, key: unknown): unknown {
  if (owner instanceof CelOptional) return readOptionalElement(owner, key);
  if (typeof key === "string") return readMember(owner, key);
  const index = toIndex(key);
  if (index instanceof CelFailure) return index;
  const value = elementAt(owner, index);
  if (value !== undefined) return value;
  return new CelFailure(
    typeof index === "boolean" ? `field not found: ${index}` : `index ${index} out of bounds [0, -1)`,
  );
}

function toIndex(key: unknown): bigint | number | boolean | CelFailure {
  const index = isCelUint(key) ? key.value : key;
  return typeof index === "bigint" || typeof index === "number" || typeof index === "boolean"
    ? index
    : new CelFailure("unsupported key type");
}

function elementAt(owner: unknown, index: bigint | number | boolean): unknown {
  if (isCelMap(owner)) return owner.get(index as never);
  return isList(owner) && Number.isInteger(Number(index)) ? owner.get(Number(index)) : undefined;
}

/** Returns the value of `has(owner.name)`. Returns false for a value without fields. */
export function hasMember(owner: unknown, name: string): boolean | CelFailure {
  if (owner instanceof CelOptional) return owner.value !== undefined && hasMember(owner.value, name);
  if (owner instanceof JsonMap || isCelMap(owner)) return owner.has(name);
  if (!isReflectMessage(owner)) return false;
  const field = owner.fields.find((field) => field.name === name);
  return field === undefined ? new CelFailure(`field not found: ${name}`) : owner.isSet(field);
}

/** Returns `seconds` or `nanos` of a timestamp or duration. */
function fieldOfTime(owner: unknown, name: string): unknown {
  if (!isReflectMessage(owner)) return undefined;
  const field = owner.fields.find((field) => field.name === name);
  return field === undefined ? undefined : BigInt(owner.get(field) as bigint | number);
}

/** Returns the key of an entry of a map. */
export function toMapKey(key: unknown): unknown {
  if (typeof key === "number" && Number.isInteger(key)) return BigInt(key);
  const isKey = typeof key === "string" || typeof key === "bigint" || typeof key === "boolean" || isCelUint(key);
  return isKey ? key : new CelFailure("unsupported key type");
}
