/** Copies arguments as JSON, so that they cannot change after the request was submitted. */

import { describeValue } from "./unknown-options.ts";

/** Maximum nesting depth. The service accepts fewer levels. */
const MAX_DEPTH = 200;

/**
 * Returns a deep copy of plain objects and arrays. Reads each member once, and omits undefined members like JSON.
 * Throws TypeError for values that JSON would change: dates, maps, class instances, functions, bigints, NaN, holes,
 * lone surrogates, circular values.
 */
export function copyJson(value: unknown, where = "the arguments", depth = 0): unknown {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "string") {
    if (/\p{Surrogate}/u.test(value)) throw notJsonError(where, "holds half of a surrogate pair");
    return value;
  }
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw notJsonError(where, `holds ${value}`);
    return value;
  }
  if (typeof value !== "object") throw notJsonError(where, `holds ${describeValue(value)}`);
  if (depth >= MAX_DEPTH) throw notJsonError(where, "is nested too deeply, or contains itself");
  if (Array.isArray(value)) return Array.from(value, (item, at) => copyJson(item, `${where}[${at}]`, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object from a different realm, such as a frame, has a different Object.prototype.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null)
    throw new TypeError(
      `${shorten(where)} holds an instance of a class; give its members as a plain object. Nothing was submitted`,
    );
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[name];
    if (member === undefined) continue;
    // Assigning `__proto__` would set the prototype instead of a member.
    Object.defineProperty(copy, copyJson(name, where) as string, {
      value: copyJson(member, `${where}.${name}`, depth + 1),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return copy;
}

/**
 * Copies an object in the same way as `copyJson`. Returns an empty object for undefined and null. Throws TypeError for
 * arrays, for other values that are not objects, and for members that `copyJson` rejects.
 */
export function copyJsonObject(value: unknown, where?: string): Record<string, unknown> {
  const copy = copyJson(value ?? {}, where);
  if (typeof copy === "object" && copy !== null && !Array.isArray(copy)) return copy as Record<string, unknown>;
  throw new TypeError(
    `${where ?? "the arguments"} must be an object; got ${describeValue(value)}. Nothing was submitted`,
  );
}

/** Returns true if two values have the same JSON. Ignores the order of members. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every(
      (name) =>
        Object.hasOwn(b, name) && equalJson((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name]),
    )
  );
}

/** Shortens the path of a value, which is long for a value that contains itself. */
const shorten = (where: string): string => (where.length > 100 ? `${where.slice(0, 99)}…` : where);

function notJsonError(where: string, reason: string): TypeError {
  return new TypeError(`${shorten(where)} ${reason}, which JSON cannot represent exactly; nothing was submitted`);
}
