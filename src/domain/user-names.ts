/** Finds the users to whom a name can refer, by their past and present names. */
import { ownerIdentity, principalOfOwner, principalOfUser, userOfPrincipal } from "./owner.ts";
import type { User } from "./users.ts";

export class UserNames {
  /** Maps the id of a user to the user's principals: `user:<id>` and all past and present names. */
  private readonly principals = new Map<string, Set<string>>();
  /** Maps a normalized name to the ids of the users who have or had it. */
  private readonly ids = new Map<string, Set<string>>();

  /** Adds a user's current name. */
  add({ id, name }: Pick<User, "id" | "name">): void {
    const identity = ownerIdentity(name);
    this.ids.set(identity, (this.ids.get(identity) ?? new Set()).add(id));
    const principals = this.principals.get(id) ?? new Set([principalOfUser(id)]);
    this.principals.set(id, principals.add(principalOfOwner(name)));
  }

  /**
   * Returns the ids of the users who have or had the owner's name.
   * @param owner the name of a user, or `user:<id>`
   */
  idsNamed(owner: string): readonly string[] {
    const named = this.ids.get(ownerIdentity(owner)) ?? [];
    const id = userOfPrincipal(owner);
    return id !== null && this.principals.has(id) ? [...new Set([...named, id])] : [...named];
  }

  /**
   * Returns the principal itself, and all principals of each user who has or had this name: `user:<id>` and every past
   * or present name.
   * @example samePersonPrincipals("owner:ada") // ["owner:ada", "user:0193…", "owner:ada lovelace"]
   */
  samePersonPrincipals(principal: string): readonly string[] {
    const owner = principal.startsWith(OWNER_PREFIX) ? principal.slice(OWNER_PREFIX.length) : principal;
    const users = this.idsNamed(owner);
    if (users.length === 0) return [principal];
    return [...new Set([principal, ...users.flatMap((id) => [...(this.principals.get(id) ?? [])])])];
  }
}

const OWNER_PREFIX = "owner:";
