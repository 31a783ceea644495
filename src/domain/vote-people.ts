/**
 * Determines which people share a key's vote: the key's owner, the key that created it, that key's creator, and so on.
 * A vote counts for all of them. Therefore no one can reach a quorum, or approve their own action, with keys that they
 * created.
 */

/** A key as the ledger records it. */
export interface RecordedKey {
  id: string;
  name: string;
  /** SHA-256 of the key's value, hex. */
  hash: string;
  scopes: readonly string[];
  agent_id: string | null;
  /** Principal of the user to whom the key belongs: `user:<id>`; null if it belongs to no one. */
  owner: string | null;
  /** Id of the key that created this key; null if the operator created it on the host. */
  created_by: string | null;
  expires_at: number | null;
  /** Present if this is a user, who created keys in a session. */
  isUser?: true;
}

type KeyOf = (id: string) => RecordedKey | null;

/** Returns the key, its creator, the creator's creator, and so on. Returns an empty list for an unknown id. */
export function listKeyMakers(id: string, keyOf: KeyOf): RecordedKey[] {
  const line: RecordedKey[] = [];
  for (let next: string | null = id; next !== null;) {
    const key: RecordedKey | null = keyOf(next);
    if (key === null || line.includes(key)) break;
    line.push(key);
    next = key.created_by;
  }
  return line;
}

/**
 * Principal of votes by a key without an owner, after the first user has enrolled. Anyone can be using the key, so its
 * vote counts as a vote of one of the other voters.
 */
export const UNKNOWN_PERSON = "unknown";

/** Returns true if the vote is by a key that anyone can be using. */
export function isOfUnknownPerson(principals: readonly string[]): boolean {
  return principals.includes(UNKNOWN_PERSON);
}
