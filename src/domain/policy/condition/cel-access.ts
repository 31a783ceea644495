/** Reads members and elements of CEL values. A read that fails returns a CelFailure. */
import { isCelList, isCelMap, isCelUint } from "@bufbuild/cel";
import { isReflectMessage } from "@bufbuild/protobuf/reflect";
import { CelFailure } from "./cel-failure.ts";
import { JsonMap } from "./cel-values.ts";

/** Returns the value of `owner.name`. */
export function readMember(owner: unknown, name: string): unknown {
  const value = owner instanceof JsonMap || isCelMap(owner) ? owner.get(name) : fieldOfTime(owner, name);
  return value === undefined ? new CelFailure(`field not found: ${name}`) : value;
}

/** Returns the value of `owner[key]`. */
export function readElement(owner: unknown, key: unknown): unknown {
  if (typeof key === "string") return readMember(owner, key);
  const index = isCelUint(key) ? key.value : key;
  if (typeof index !== "bigint" && typeof index !== "number" && typeof index !== "boolean")
    return new CelFailure("unsupported key type");
  const value = elementAt(owner, index);
  if (value !== undefined) return value;
  return new CelFailure(
    typeof index === "boolean" ? `field not found: ${index}` : `index ${index} out of bounds [0, -1)`,
  );
}

function elementAt(owner: unknown, index: bigint | number | boolean): unknown {
  if (isCelMap(owner)) return owner.get(index as never);
  return isCelList(owner) && Number.isInteger(Number(index)) ? owner.get(Number(index)) : undefined;
}

/** Returns the value of `has(owner.name)`. Returns false for a value without fields. */
export function hasMember(owner: unknown, name: string): boolean | CelFailure {
  if (owner instanceof JsonMap || isCelMap(owner)) return owner.has(name);
  if (!isReflectMessage(owner)) return false;
  const field = owner.fields.find((one) => one.name === name);
  return field === undefined ? new CelFailure(`field not found: ${name}`) : owner.isSet(field);
}

/** Returns `seconds` or `nanos` of a timestamp or duration. */
function fieldOfTime(owner: unknown, name: string): unknown {
  if (!isReflectMessage(owner)) return undefined;
  const field = owner.fields.find((one) => one.name === name);
  return field === undefined ? undefined : BigInt(owner.get(field) as bigint | number);
}

/** Returns the key of an entry of a map. */
export function toMapKey(key: unknown): unknown {
  if (typeof key === "number" && Number.isInteger(key)) return BigInt(key);
  const isKey = typeof key === "string" || typeof key === "bigint" || typeof key === "boolean" || isCelUint(key);
  return isKey ? key : new CelFailure("unsupported key type");
}
