/** Checks at startup that each reference of the configuration to a person is unambiguous, and warns if it matches no user. */
import { ConfigError, type Config } from "../config/index.ts";
import type { Logger } from "../contract/host.ts";
import { findAmbiguity, findReferredUser, referenceKey } from "../domain/person-reference.ts";
import type { Users } from "../domain/users.ts";

/** A reference to a person, with its RFC 6901 pointer in the configuration. */
interface ConfiguredReference {
  pointer: string;
  reference: string;
}

/**
 * Throws ConfigError if a reference refers to several users. Logs a warning for references that refer to no active user,
 * for example because the person has not signed in yet.
 */
export function checkReferences(config: Config, users: Users, log: Logger): void {
  const references = listReferences(config);
  const faults = references.flatMap(({ pointer, reference }) => {
    const message = findAmbiguity(users, reference);
    return message === null
      ? []
      : [{ origin: "assent.yaml", line: null, column: null, message: `${pointer}: ${message}` }];
  });
  if (faults.length > 0) throw new ConfigError(faults);
  const unresolved = references.filter(({ reference }) => !("user" in findReferredUser(users, reference)));
  if (unresolved.length > 0)
    log.warn("the configuration refers to people who are not active users, so these references have no effect", {
      references: unresolved.slice(0, 20).map(({ pointer, reference }) => `${pointer}: ${reference}`),
      count: unresolved.length,
    });
}

function listReferences({ groups, rota, channels }: Config): ConfiguredReference[] {
  const ofList = (path: string, references: readonly string[]): ConfiguredReference[] =>
    references.map((reference, i) => ({ pointer: `${path}/${i}`, reference }));
  return [
    ...Object.entries(groups).flatMap(([name, { members }]) => ofList(`/groups/${name}/members`, members)),
    ...Object.entries(rota).flatMap(([name, { members }]) => ofList(`/rota/${name}/members`, members)),
    ...Object.entries(channels).flatMap(([name, { people = [] }]) =>
      ofList(
        `/channels/${name}/people`,
        people.map(({ owner }) => owner),
      ),
    ),
  ].filter(({ reference }) => referenceKey(reference) !== null);
}
