/** Normalizes owner names, so that each person has only one identity. */

/** Maximum length of an identity, so that it fits in an approval token. */
const MAX_LENGTH = 200;

/**
 * Returns the same identity for every spelling of an owner. Ignores case, width, composition, invisible characters and
 * extra spaces. People type the owner of each key by hand, and the owners `Ada` and `ada` must count as one approver.
 * Look-alike letters of other scripts stay different.
 */
export function ownerIdentity(owner: string): string {
  const visible = owner.normalize("NFKC").replace(/[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}]/gu, "");
  return Array.from(visible, foldCase).join("").normalize("NFKC").replace(/\s+/gu, " ").trim();
}

/**
 * Converts to upper case and back, so that ß equals SS and both lowercase sigmas are equal. The i without a dot is not
 * an i, although its upper case is I.
 */
function foldCase(character: string): string {
  return character === "\u0131" ? character : character.toUpperCase().toLowerCase();
}

/** Returns true if two owners have the same identity. */
export function isSameOwner(a: string, b: string): boolean {
  return ownerIdentity(a) === ownerIdentity(b);
}

/** Returns true if the identity is non-empty and not too long. */
export function isValidOwner(owner: string): boolean {
  const identity = ownerIdentity(owner);
  return identity !== "" && identity.length <= MAX_LENGTH;
}

/** Formats a principal for sentences: `alice`, or `the key 0193…` for a key without an owner. */
export function displayPrincipal(principal: string): string {
  return principal.startsWith("owner:")
    ? principal.slice("owner:".length)
    : principal.replace(/^key:/, "the key ").replace(/^reviewer:/, "the reviewer ");
}

/** Returns the principal of a key: its owner if it has one, else the key. */
export function principalOfKey({ id, owner }: { id: string; owner: string | null }): string {
  return owner === null ? `key:${id}` : principalOfOwner(owner);
}

/** Returns the principal of an owner, for votes by key or by an approval link. */
export function principalOfOwner(owner: string): string {
  return `owner:${ownerIdentity(owner)}`;
}

const USER_PREFIX = "user:";

/** Returns the principal of a user's votes: `user:<id>`. */
export function principalOfUser(id: string): string {
  return USER_PREFIX + id;
}

/** Returns the user's id; null if the principal is not a user's. */
export function userOfPrincipal(principal: string): string | null {
  return principal.startsWith(USER_PREFIX) ? principal.slice(USER_PREFIX.length) : null;
}
