/**
 * References to people in the configuration and in requests: `user:<id>`, a verified e-mail address, or
 * `<issuer>#<subject>` for an account at an identity provider. A display name refers to no one, because people choose
 * their names, change them and share them.
 */
import { sha256Hex, utf8 } from "./hash.ts";
import { principalOfUser } from "./principals.ts";
import type { User, Users } from "./users.ts";

/** Matches one address in ASCII. Other addresses could look like, or fold to, an address of another person. */
const EMAIL = /^[!-?A-~]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/;
/** Matches `<issuer>#<subject>`. An issuer contains no `#`. */
const SUBJECT = /^https?:\/\/[^\s#?\p{C}]+#[^\p{C}]+$/u;
const USER = /^user:[A-Za-z0-9-]+$/;

/** The forms of a reference, for messages. */
export const REFERENCE_FORMS =
  "`user:<id>`, the verified e-mail address of a user, or `<issuer>#<subject>` for an account at an identity provider";

/** Returns the domain of an e-mail address in lowercase; null if the text is not an address in ASCII. */
export function domainOfEmail(address: string): string | null {
  return EMAIL.test(address) ? address.slice(address.lastIndexOf("@") + 1).toLowerCase() : null;
}

/** Returns the digest of an e-mail address that a user's entry contains instead of the address. Ignores case. */
export function digestEmail(address: string): string {
  return sha256Hex(utf8(`email:${address.toLowerCase()}`));
}

/** Returns the form in which references are compared; null if the text is not a reference to a person. */
export function referenceKey(text: string): string | null {
  if (USER.test(text) || SUBJECT.test(text)) return text;
  return domainOfEmail(text) === null ? null : keyOfEmail(digestEmail(text));
}

const keyOfEmail = (digest: string): string => `email:${digest}`;

/** Returns the forms of all references that could refer to a user. */
function keysOfUser({ id, identities, email, ended_at }: User): string[] {
  return [
    principalOfUser(id),
    ...identities.map(({ issuer, subject }) => `${issuer}#${subject}`),
    // An address can pass to another person after the user has left.
    ...(email === null || ended_at !== null ? [] : [keyOfEmail(email)]),
  ];
}

type Referred = ReadonlyMap<string, readonly User[]>;
/** The users by reference. Each change of a user creates another map of users. */
const indexes = new WeakMap<Users, Referred>();

function indexOf(users: Users): Referred {
  const cached = indexes.get(users);
  if (cached !== undefined) return cached;
  const index = new Map<string, User[]>();
  for (const user of users.values())
    for (const key of keysOfUser(user)) index.set(key, [...(index.get(key) ?? []), user]);
  indexes.set(users, index);
  return index;
}

/**
 * Returns the references that identify only this user, in the form of `referenceKey`. An address that two active users
 * share identifies neither of them.
 */
export function listReferences(users: Users, user: User): string[] {
  const index = indexOf(users);
  return keysOfUser(user).filter((key) => index.get(key)?.length === 1);
}

/**
 * Returns the active user to whom a reference refers; a fault if there is none, or more than one.
 * @example findReferredUser(users, "ada@example.com") // { user: { id: "0193…", name: "Ada Lovelace", … } }
 */
export function findReferredUser(users: Users, reference: string): { user: User } | { fault: string } {
  const quoted = JSON.stringify(reference);
  const key = referenceKey(reference);
  if (key === null) return { fault: `${quoted} identifies no one; give ${REFERENCE_FORMS}` };
  const found = indexOf(users).get(key) ?? [];
  const [user] = found;
  if (found.length > 1)
    return {
      fault: `${quoted} is the address of ${found.length} users (${listIds(found)}); refer to one as user:<id>`,
    };
  if (user === undefined) return { fault: `no user is ${quoted}` };
  return user.ended_at === null ? { user } : { fault: `the user ${quoted} was deactivated` };
}

/** Returns the fault of a reference that refers to several users; null if there is none. */
export function findAmbiguity(users: Users, reference: string): string | null {
  const found = indexOf(users).get(referenceKey(reference) ?? "") ?? [];
  const answer = found.length > 1 ? findReferredUser(users, reference) : null;
  return answer !== null && "fault" in answer ? answer.fault : null;
}

const listIds = (users: readonly User[]): string => users.map(({ id }) => principalOfUser(id)).join(", ");
