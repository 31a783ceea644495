/** Display names of principals, for messages and pages. A name identifies no one. */
import type { StorageReader } from "../contract/storage.ts";
import { findNameFault, foldName } from "../domain/names.ts";
import { displayPrincipal, userOfPrincipal } from "../domain/principals.ts";
import type { Users } from "../domain/users.ts";

/** Display names, keyed by principal. */
export type PrincipalNames = Readonly<Record<string, string>>;

/**
 * Returns the names of users and of keys without an owner. Adds the id to a name that several active users have, and to
 * one that imitates an id or another name. Omits principals without a name.
 */
export async function readPrincipalNames(
  reader: Pick<StorageReader, "key">,
  users: Users,
  principals: readonly (string | null)[],
): Promise<PrincipalNames> {
  const names: Record<string, string> = {};
  for (const principal of new Set(principals)) {
    const name = principal === null ? null : await readName(reader, users, principal);
    if (principal !== null && name !== null) names[principal] = name;
  }
  return names;
}

/** Returns the principal as it appears in sentences, with its name if it has one. */
export async function describePrincipal(
  reader: Pick<StorageReader, "key">,
  users: Users,
  principal: string,
): Promise<string> {
  return displayPrincipal(principal, await readName(reader, users, principal));
}

async function readName(reader: Pick<StorageReader, "key">, users: Users, principal: string): Promise<string | null> {
  if (principal.startsWith("key:")) return (await reader.key(principal.slice("key:".length)))?.name ?? null;
  const user = users.get(userOfPrincipal(principal) ?? "");
  if (user === undefined) return null;
  const itself = user.ended_at === null ? 1 : 0;
  const isShared = (countNames(users).get(comparedName(user.name)) ?? 0) > itself;
  return isShared || imitates(user.name) ? `${user.name} (${principal})` : user.name;
}

/** The number of active users with each compared name. Each change of a user creates another map of users. */
const counts = new WeakMap<Users, ReadonlyMap<string, number>>();

function countNames(users: Users): ReadonlyMap<string, number> {
  const cached = counts.get(users);
  if (cached !== undefined) return cached;
  const count = new Map<string, number>();
  for (const { name, ended_at } of users.values()) {
    const compared = comparedName(name);
    if (ended_at === null) count.set(compared, (count.get(compared) ?? 0) + 1);
  }
  counts.set(users, count);
  return count;
}

/**
 * Returns the form in which names look the same: without regard to case, to the kind and number of spaces, and to
 * letters that many fonts draw alike.
 */
const comparedName = (name: string): string =>
  foldName(name)
    .replaceAll(/\s+/gu, " ")
    .trim()
    .replaceAll(/[i1|]/gu, "l")
    .replaceAll("0", "o")
    .replaceAll("rn", "m")
    .replaceAll("vv", "w");

/** Returns true if a name could be read as a principal, or as another name. */
function imitates(name: string): boolean {
  return /\b(?:user|key|reviewer)s?[:：]|^the (?:user|key|reviewer)\b/iu.test(name) || findNameFault(name) !== null;
}
