/** Who an owner is, however the name was typed. */

/** Longest identity; leaves room for it in an approval token. */
const MAX_LENGTH = 200;

/**
 * The same text for every spelling of one owner: case, width, composition, invisible characters and
 * spaces around and between words do not count. Names are typed by hand, once a key; a person whose
 * keys read `Ada` and `ada` is still one approver. Letters of other scripts that look alike stay apart.
 */
export function ownerIdentity(owner: string): string {
  return (
    owner
      .normalize("NFKC")
      .replace(/[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}]/gu, "")
      // Both ways, so that ß and SS, and the two lowercase sigmas, meet.
      .toUpperCase()
      .toLowerCase()
      .replaceAll("ς", "σ")
      .normalize("NFKC")
      .replace(/\s+/gu, " ")
      .trim()
  );
}

/** Whether something is left of the name that tells one owner from another. */
export function isValidOwner(owner: string): boolean {
  const identity = ownerIdentity(owner);
  return identity !== "" && identity.length <= MAX_LENGTH;
}

/** A principal as sentences name it: `alice`, or `the key 0193…` for a key without an owner. */
export function displayPrincipal(principal: string): string {
  return principal.startsWith("owner:") ? principal.slice("owner:".length) : principal.replace(/^key:/, "the key ");
}

/** The principal of a key, by its owner where it has one. */
export function principalOfKey({ id, owner }: { id: string; owner: string | null }): string {
  return owner === null ? `key:${id}` : principalOfOwner(owner);
}

/** The principal of whoever acts for this owner: by a key, or by a link that was sent. */
export function principalOfOwner(owner: string): string {
  return `owner:${ownerIdentity(owner)}`;
}
