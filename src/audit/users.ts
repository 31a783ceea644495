/** Checks the users in the ledger, and that each entry of a user was made while that user could make it. */
import type { ApprovalEntry, Actor, UserEntry } from "../domain/entries.ts";
import { userOfPrincipal } from "../domain/owner.ts";
import { scopesOfRoles } from "../domain/roles.ts";
import { hasScope } from "../domain/scopes.ts";
import { applyUserEntry, type User } from "../domain/users.ts";
import type { Body } from "./report.ts";

export interface UsersAudit {
  /** Reads the entries one after another. Throws RangeError for an entry that contradicts earlier ones. */
  fold(body: Body): void;
  count(): number;
}

export function createUsersAudit(): UsersAudit {
  const users = new Map<string, User>();
  /** User by external identity and by passkey: each belongs to one user for good. */
  const holders = new Map<string, string>();

  function foldUser(entry: UserEntry): void {
    const { id, identities, passkeys } = entry.user;
    users.set(id, applyUserEntry(users.get(id) ?? null, entry));
    const held = [
      ...identities.map(({ issuer, subject }) => `the identity ${subject} of ${issuer}`),
      ...passkeys.map((passkey) => `the passkey ${passkey.id}`),
    ];
    for (const what of held) {
      const holder = holders.get(what) ?? id;
      if (holder !== id) throw new RangeError(`${what} belongs to the user ${holder}`);
      holders.set(what, id);
    }
  }

  function assertActor(body: Body): void {
    const by = body["by"] as Actor | null | undefined;
    const id = typeof by?.principal === "string" ? userOfPrincipal(by.principal) : null;
    if (id === null) return;
    const user = users.get(id);
    if (user === undefined) throw new RangeError(`it names the user ${id}, who was never created`);
    if (user.ended_at !== null) throw new RangeError(`it is by the user ${id}, who was ended before`);
    if (body["type"] !== "approval") return;
    const { verdict } = body as unknown as ApprovalEntry;
    const isVote = verdict === "approve" || verdict === "deny";
    if (isVote && !hasScope(scopesOfRoles(user.roles), "approvals:decide"))
      throw new RangeError(`it is a vote of the user ${id}, whose roles did not include approving`);
  }

  return {
    fold(body) {
      // Before the change: a user may give up their own role or end themselves.
      assertActor(body);
      if (body["type"] === "user") foldUser(body as unknown as UserEntry);
    },
    count: () => users.size,
  };
}
