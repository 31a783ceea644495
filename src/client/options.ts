/** What callers in plain JavaScript misspell: nobody else tells them. */

/**
 * Throws TypeError for an option that is not one of `names`: passed over, it would leave a call to another service, agent
 * or key than the caller said.
 */
export function refuseUnknownOptions(what: string, options: object, names: Readonly<Record<string, true>>): void {
  const wrong = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (wrong !== undefined)
    throw new TypeError(`${what} has no option "${wrong}"; it has ${Object.keys(names).join(", ")}`);
}
