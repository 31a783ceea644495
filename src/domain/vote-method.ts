/** How an approver gave a vote. */

/** `key_id` of votes by link. It cannot collide with ids of keys, which are UUIDs. */
export const LINK_KEY_ID = "link";

export type VoteMethod = "passkey" | "link" | "session" | "key";

/**
 * Returns how the approver proved who they are: with a signature of the vote, a personal link, a session of a signed-in
 * user, or an API key.
 * @example
 * voteMethod({ by: { principal: "owner:ada", key_id: "link" }, gesture: null }); // "link"
 */
export function voteMethod({
  by,
  gesture,
}: {
  by: { principal: string; key_id: string };
  /** Null if the vote is not signed. */
  gesture: object | null;
}): VoteMethod {
  if (gesture !== null) return "passkey";
  if (by.key_id === LINK_KEY_ID) return "link";
  // A session's votes name the user in both members.
  return by.principal === `user:${by.key_id}` ? "session" : "key";
}
