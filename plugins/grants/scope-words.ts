/** Describes what a grant covers. Also loaded by the console and the commands. */

/** A member that a suggested scope does not fix. */
export interface VaryingMember {
  /** The member in CEL, such as `params.amount`. */
  member: string;
  /** The values that the scope allows, such as `from 5 to 20`. */
  values: string;
}

/**
 * Describes a suggested scope.
 * @example
 * describeSuggestedScope([{ member: "params.amount", values: "from 5 to 20" }]);
 * // "equal requests, except that params.amount may be from 5 to 20"
 */
export function describeSuggestedScope(varying: readonly VaryingMember[]): string {
  const exceptions = varying.map(({ member, values }) => `${member} may be ${values}`);
  return exceptions.length === 0
    ? "equal requests only: the same parameters and context"
    : `equal requests, except that ${exceptions.join(", and ")}`;
}

/**
 * Describes the members that a scope leaves free.
 * @param free as `findFreeMembers` returns it
 * @example
 * describeFreeMembers(["params.note", "params.*"]); // "params.note, any other parameter"
 */
export function describeFreeMembers(free: readonly string[]): string {
  const words = free.map((member) =>
    member === "params.*" ? "any other parameter" : member === "context.*" ? "any other context" : member,
  );
  return words.length === 0 ? "nothing: it covers only equal requests" : words.join(", ");
}
