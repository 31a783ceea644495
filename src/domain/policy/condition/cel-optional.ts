/**
 * Functions on optional values, under the names of the optional types of cel-go. `or` and `orValue` evaluate their
 * argument only if there is no value, so the plan of a condition implements them.
 */
import { celFunc, celMethod, CelScalar, isCelMap, isCelUint, listType, objectType, type CelList } from "@bufbuild/cel";
import { isReflectMessage } from "@bufbuild/protobuf/reflect";
import { toCelList } from "./cel-lists.ts";
import { chargeSteps } from "./cel-meter.ts";
import { CelOptional, isList, OPTIONAL_NONE } from "./cel-values.ts";

const { BOOL, DYN, STRING } = CelScalar;
const LIST_TYPE = listType(DYN);

/** The type of optional values. */
export const OPTIONAL: ReturnType<typeof objectType> = objectType("optional_type");
/** The type of optional strings. The static check reads its element. */
export const OPTIONAL_TEXT: typeof OPTIONAL = Object.assign(objectType("optional_type"), { element: STRING });

/** Returns true if a value is the default of its type, such as 0, `""` and an empty list. */
function isZero(value: unknown): boolean {
  if (value instanceof CelOptional) return value.value === undefined;
  if (value instanceof Uint8Array) return value.length === 0;
  if (isCelUint(value)) return value.value === 0n;
  if (isList(value) || isCelMap(value)) return value.size === 0;
  if (isReflectMessage(value)) {
    const { seconds, nanos } = value.message as unknown as { seconds: bigint; nanos: number };
    return seconds === 0n && nanos === 0;
  }
  return value === null || value === false || value === "" || value === 0 || value === 0n;
}

/** Returns the value. Throws if there is none. */
function valueOf(optional: CelOptional): unknown {
  if (optional.value === undefined) throw new Error("the optional has no value");
  return optional.value;
}

/** Returns the values of the optionals that have a value. */
function unwrap(list: CelList): unknown {
  chargeSteps(1 + list.size);
  const values: unknown[] = [];
  for (const element of list) {
    if (!((element as unknown) instanceof CelOptional)) throw new Error("an element is not optional");
    values.push(...(element as unknown as CelOptional));
  }
  return toCelList(values);
}

/** Returns the element at an index as an optional. */
const elementAt = (list: CelList, index: number): CelOptional =>
  index >= 0 && index < list.size ? new CelOptional(list.get(index)) : OPTIONAL_NONE;

/** Declares a method of optionals. */
const method = (name: string, args: readonly unknown[], result: unknown, call: (...operands: never[]) => unknown) =>
  celMethod(
    name,
    OPTIONAL,
    args as never,
    result as never,
    function (this: unknown, ...rest: unknown[]) {
      return call(this as never, ...(rest as never[])) as never;
    } as never,
  );

export const OPTIONAL_FUNCTIONS: readonly unknown[] = [
  celFunc("optional.of", [DYN], OPTIONAL, ((value: unknown) => new CelOptional(value)) as never),
  celFunc("optional.ofNonZeroValue", [DYN], OPTIONAL, ((value: unknown) =>
    isZero(value) ? OPTIONAL_NONE : new CelOptional(value)) as never),
  celFunc("optional.none", [], OPTIONAL, (() => OPTIONAL_NONE) as never),
  celFunc("optional.unwrap", [LIST_TYPE], LIST_TYPE, unwrap as never),
  celMethod("unwrapOpt", LIST_TYPE, [], LIST_TYPE, function () {
    return unwrap(this) as never;
  }),
  method("hasValue", [], BOOL, ({ value }: CelOptional) => value !== undefined),
  method("value", [], DYN, valueOf),
  method("or", [OPTIONAL], OPTIONAL, (optional: CelOptional, other: CelOptional) =>
    optional.value === undefined ? other : optional,
  ),
  method("orValue", [DYN], DYN, ({ value }: CelOptional, other: unknown) => (value === undefined ? other : value)),
  celMethod("first", LIST_TYPE, [], OPTIONAL, function () {
    return elementAt(this, 0) as never;
  }),
  celMethod("last", LIST_TYPE, [], OPTIONAL, function () {
    return elementAt(this, this.size - 1) as never;
  }),
];
