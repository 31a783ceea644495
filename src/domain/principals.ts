/**
 * Principals: the ids for which votes count. A principal is `user:<id>` for a user who uses a session, or their own key
 * or link, and `key:<id>` for a key without an owner. Names are never principals, because people choose their names.
 */

const USER_PREFIX = "user:";
const KEY_PREFIX = "key:";

/** Returns the principal of a user: `user:<id>`. It is also the `owner` of the user's keys. */
export function principalOfUser(id: string): string {
  return USER_PREFIX + id;
}

/**
 * Returns the user's id; null if the principal or owner is not a user's.
 * @example
 * userOfPrincipal("user:019346a0-0000-7000-8000-000000000000"); // "019346a0-…"
 */
export function userOfPrincipal(principal: string | null): string | null {
  return principal?.startsWith(USER_PREFIX) === true ? principal.slice(USER_PREFIX.length) : null;
}

/** Returns the principal of a key: the user who owns it, else the key. */
export function principalOfKey({ id, owner }: { id: string; owner: string | null }): string {
  return owner !== null && userOfPrincipal(owner) !== null ? owner : KEY_PREFIX + id;
}

/**
 * Formats a principal for sentences: `Ada Lovelace` for a user, `the key laptop` for a key without an owner, and
 * `the user 0193…` or `the key 0193…` without a name.
 * @example
 * displayPrincipal(`user:${id}`, "Ada Lovelace"); // "Ada Lovelace"
 */
export function displayPrincipal(principal: string, name: string | null = null): string {
  if (name !== null) return principal.startsWith("key:") ? `the key ${name}` : name;
  return principal.replace(/^(user|key|reviewer):/, "the $1 ");
}
