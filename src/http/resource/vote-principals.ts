/** Determines which principals a vote counts for: the voter and, unless key creators are trusted, the creators of the key. */
import type { CoreHost } from "../../contract/core-host.ts";
import type { Actor } from "../../domain/entries.ts";
import { listKeyMakers, principalsOfKeys } from "../../domain/standing.ts";

/**
 * Returns the principals that a vote counts for. If the vote came through a link, `key_id` belongs to no key, so only the
 * voter counts.
 */
export function principalsBehindVote(
  host: Pick<CoreHost, "config" | "keys">,
  vote: Pick<Actor, "principal" | "key_id">,
): string[] {
  const { principal, key_id } = vote;
  const line = listKeyMakers(key_id, (id) => host.keys.recordedKey(id));
  // The first is the voter's own key or user, whose name can be the owner of other keys.
  return [principal, ...principalsOfKeys(host.config.approvals.trust_key_makers ? line.slice(0, 1) : line)];
}
