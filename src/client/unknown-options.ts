/** Rejects misspelled options, which plain JavaScript does not detect. */

/**
 * Throws TypeError for an unknown option. If misspelled options were ignored, a call could go to another service or use
 * another agent or key.
 */
export function refuseUnknownOptions(target: string, options: object, names: Readonly<Record<string, true>>): void {
  const wrong = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (wrong !== undefined)
    throw new TypeError(`${target} has no option "${wrong}"; it has ${Object.keys(names).join(", ")}`);
}
