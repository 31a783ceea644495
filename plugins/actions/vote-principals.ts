/**
 * Determines the principals for whom a vote counts: the voter and, unless key creators are trusted, the creators of the
 * key.
 */
import {
  type Actor,
  type CoreHost,
  listKeyMakers,
  principalOfKey,
  principalOfUser,
  type RecordedKey,
  UNKNOWN_PERSON,
} from "../../src/core.ts";

/**
 * Returns the principals for whom a vote counts. The `key_id` of a vote by link is not the id of a key, so only the
 * voter counts. After the first user has enrolled, a vote with a key that has no owner also counts as a vote of an
 * unknown person.
 */
export function principalsBehindVote(
  host: Pick<CoreHost, "config" | "keys">,
  vote: Pick<Actor, "principal" | "key_id">,
): string[] {
  const isUnknown = host.keys.isUnknownOwner(vote.principal);
  const principals = host.config.approvals.trust_key_makers ? [vote.principal] : principalsBehindCredential(host, vote);
  return isUnknown ? [...principals, UNKNOWN_PERSON] : principals;
}

/**
 * Returns the principals of everyone behind a credential, even if `approvals.trust_key_makers` makes their votes count
 * separately.
 */
export function principalsBehindCredential(
  host: Pick<CoreHost, "keys">,
  { principal, key_id }: Pick<Actor, "principal" | "key_id">,
): string[] {
  const line = listKeyMakers(key_id, (id) => host.keys.recordedKey(id));
  return [...new Set([principal, ...principalsOfKeys(line)])];
}

/** Returns the principals of keys and users. */
export function principalsOfKeys(line: readonly RecordedKey[]): string[] {
  return line.map((key) => (key.isUser === true ? principalOfUser(key.id) : principalOfKey(key)));
}
