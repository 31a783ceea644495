/** The people that the configured members refer to. */
import { findReferredUser, principalOfUser, type Users } from "../../src/core.ts";

/** Returns the principal of a configured member; the reference itself if it refers to no active user. */
export function principalOfMember(users: Users, reference: string): string {
  const found = findReferredUser(users, reference);
  return "user" in found ? principalOfUser(found.user.id) : reference;
}
