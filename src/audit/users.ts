/**
 * Checks the users in the ledger: the user who made an entry must have been permitted to make it at that time, and each
 * signed vote must have the signature of a passkey that the user had at the time of the vote.
 */
import type { ApprovalEntry, Actor, UserEntry } from "../domain/entries.ts";
import { findGestureFault } from "../domain/gesture.ts";
import { userOfPrincipal } from "../domain/principals.ts";
import { scopesOfRoles } from "../domain/roles.ts";
import { hasScope } from "../domain/scopes.ts";
import { applyUserEntry, NO_USERS, type Users } from "../domain/users.ts";
import { verifyPasskeySignature } from "../identity/passkey-signature.ts";
import type { EntryBody } from "./report.ts";

interface UsersAuditor {
  /** Applies the next entry; call it in order. Throws for an entry that contradicts earlier entries. */
  fold(body: EntryBody): void;
  count(): number;
  /** Returns the users as of the last entry. */
  users(): Users;
}

/** @param origin the name of the log */
export function createUsersAuditor(origin: string): UsersAuditor {
  let users = NO_USERS;
  /** Maps an external identity or a passkey to its user. An identity or passkey can never move to another user. */
  const holders = new Map<string, string>();

  function foldUser(entry: UserEntry): void {
    const { id, identities, passkeys } = entry.user;
    users = users.with(id, applyUserEntry(users.get(id) ?? null, entry));
    const claims = [
      ...identities.map(({ issuer, subject }) => `the identity ${subject} of ${issuer}`),
      ...passkeys.map((passkey) => `the passkey ${passkey.id}`),
    ];
    for (const what of claims) {
      const holder = holders.get(what) ?? id;
      if (holder !== id) throw new RangeError(`${what} belongs to the user ${holder}`);
      holders.set(what, id);
    }
  }

  function assertActor(body: EntryBody): void {
    const by = body["by"] as Actor | null | undefined;
    const id = typeof by?.principal === "string" ? userOfPrincipal(by.principal) : null;
    if (id === null) return;
    const user = users.get(id);
    if (user === undefined) throw new RangeError(`it names the user ${id}, which does not exist`);
    if (user.ended_at !== null) throw new RangeError(`it was made by the user ${id} after that user was deactivated`);
    if (body["type"] !== "approval") return;
    const { verdict } = body as unknown as ApprovalEntry;
    const isVote = verdict === "approve" || verdict === "deny";
    if (isVote && !hasScope(scopesOfRoles(user.roles), "approvals:decide"))
      throw new RangeError(`it is a vote of the user ${id}, whose roles did not include approving`);
  }

  function assertSignature(body: EntryBody): void {
    const { gesture = null, by, ...entry } = body as unknown as Partial<ApprovalEntry>;
    if (body["type"] !== "approval" || gesture === null) return;
    const principal = by?.principal ?? "";
    const id = userOfPrincipal(principal);
    const passkey = users.get(id ?? "")?.passkeys.find((each) => each.id === gesture.credential_id);
    if (passkey === undefined)
      throw new RangeError(
        `its vote is signed with the passkey ${gesture.credential_id}, which ${principal || "no one"} did not have`,
      );
    const { action_id = "", commitment = "", verdict = "", comment = null } = entry;
    const { questions = null, plan = null, break_glass = false, grant = null, preview = null } = entry;
    if (preview !== gesture.preview)
      throw new RangeError("its vote records a different preview than the one that was signed");
    const vote = { action_id, commitment, verdict, comment, questions, plan, break_glass, grant, gesture };
    const fault = findGestureFault(origin, vote, principal, passkey, verifyPasskeySignature);
    if (fault !== null) throw new RangeError(`the signature of its vote is not valid: ${fault}`);
  }

  return {
    fold(body) {
      // Check the actor before applying the change, because users can remove their own roles or deactivate themselves.
      assertActor(body);
      assertSignature(body);
      if (body["type"] === "user") foldUser(body as unknown as UserEntry);
    },
    count: () => users.size,
    users: () => users,
  };
}
