/** Rejects misspelled options, which plain JavaScript does not detect. */

/** Describes a value in an error message: "the number 5", "a function". */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "an array";
  if (typeof value === "string") return `the string ${JSON.stringify(value.slice(0, 50))}`;
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint")
    return `the ${typeof value} ${value}`;
  return `${typeof value === "object" ? "an" : "a"} ${typeof value}`;
}

/**
 * Throws TypeError for an unknown option, and for options that are not an object. If misspelled options were ignored, a
 * call could go to another service or use another agent or key.
 */
export function refuseUnknownOptions(target: string, options: object, names: Readonly<Record<string, true>>): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new TypeError(`${target} takes its options as an object; got ${describeValue(options)}`);
  const wrong = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (wrong !== undefined)
    throw new TypeError(`${target} has no option "${wrong}"; it has ${Object.keys(names).join(", ")}`);
}
