/** Finds the user to whom an address of a channel refers. */
import { findUser, isSameOwner, resolveOwner, type User, userOfPrincipal, type Users } from "../../../src/core.ts";

/**
 * Returns the active user; a fault if no user matches, or several users match.
 * @param to the name of a user, or `user:<id>`
 * @example
 * findRecipient(users, "ada"); // { user: { id: "0193…", name: "Ada", … } }
 */
export function findRecipient(users: Users, to: string): { user: User } | { fault: string } {
  const resolved = resolveOwner(users, to);
  if ("fault" in resolved) return resolved;
  const id = userOfPrincipal(to);
  const user = findUser(
    users,
    ({ ended_at, ...each }) => ended_at === null && (id === null ? isSameOwner(each.name, to) : each.id === id),
  );
  // Without any user, an owner can be any name.
  return user === null ? { fault: `no user is named ${JSON.stringify(to)}` } : { user };
}
