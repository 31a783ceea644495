/**
 * The assertions of the suite. `deepEqual` names the first value that differs instead of showing all differences,
 * because Node 24 does not finish showing the differences of large values.
 */
import nodeAssert from "node:assert/strict";
import { inspect, isDeepStrictEqual } from "node:util";

type Assertions = Pick<typeof nodeAssert, "equal" | "notDeepEqual" | "ok" | "rejects"> & {
  deepEqual(actual: unknown, expected: unknown, message?: string): void;
};

/** Maximum number of characters of a displayed value. */
const MAX_SHOWN = 120;

const assert: Assertions = {
  deepEqual(actual, expected, message) {
    if (isDeepStrictEqual(actual, expected)) return;
    const difference = describeDifference(actual, expected, "");
    throw new nodeAssert.AssertionError({ message: message === undefined ? difference : `${message}: ${difference}` });
  },
  equal: nodeAssert.equal,
  notDeepEqual: nodeAssert.notDeepEqual,
  ok: nodeAssert.ok,
  rejects: nodeAssert.rejects,
};
export default assert;

function describeDifference(actual: unknown, expected: unknown, path: string): string {
  if (isObject(actual) && isObject(expected) && Object.getPrototypeOf(actual) === Object.getPrototypeOf(expected)) {
    const keys = new Set([...Object.keys(expected), ...Object.keys(actual)]);
    for (const key of keys)
      if (!isDeepStrictEqual(actual[key], expected[key]))
        return describeDifference(actual[key], expected[key], path === "" ? key : `${path}.${key}`);
  }
  const type =
    expected instanceof Uint8Array && !(actual instanceof Uint8Array) ? "; return bytes as a Uint8Array" : "";
  return `${path === "" ? "the value" : path} is ${show(actual)}; expected ${show(expected)}${type}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function show(value: unknown): string {
  const text = inspect(value, {
    breakLength: Infinity,
    compact: true,
    depth: 1,
    maxArrayLength: 8,
    maxStringLength: MAX_SHOWN,
  });
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}
