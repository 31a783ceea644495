/**
 * Checks the users in the ledger: the user who made an entry must have been permitted to make it at that time, and each
 * signed vote must have the signature of a passkey that the user had at the time of the vote.
 */
import { findGestureFault } from "../../src/browser.ts";
import {
  type Actor,
  type ApprovalEntry,
  hasScope,
  scopesOfRoles,
  type UserEntry,
  userOfPrincipal,
  type Users,
  userState,
  verifyPasskeySignature,
} from "../../src/core.ts";
import type { EntryBody, FeatureAuditor } from "../../src/plugin.ts";

export function createUserAuditor(): FeatureAuditor {
  /** Maps an external identity or a passkey to its user. An identity or passkey can never move to another user. */
  const holders = new Map<string, string>();

  function assertOwnClaims({ user: { id, identities, passkeys } }: UserEntry): void {
    const claims = [
      ...identities.map(({ issuer, subject }) => `the identity ${subject} of ${issuer}`),
      ...passkeys.map((passkey) => `the passkey ${passkey.id}`),
    ];
    for (const claim of claims) {
      const holder = holders.get(claim) ?? id;
      if (holder !== id) throw new RangeError(`${claim} belongs to the user ${holder}`);
      holders.set(claim, id);
    }
  }

  return {
    check(entry, { state, origin }) {
      // The users before the entry, because users can remove their own roles or deactivate themselves.
      const users = state(userState);
      assertMayAct(entry, users);
      if (entry.type === "approval") assertSignature(entry, users, origin);
      if (entry.type === "user") assertOwnClaims(entry);
    },
  };
}

function assertMayAct(entry: EntryBody, users: Users): void {
  const { by } = entry as { by?: Actor | null };
  const id = typeof by?.principal === "string" ? userOfPrincipal(by.principal) : null;
  if (id === null) return;
  const user = users.get(id);
  if (user === undefined) throw new RangeError(`it names the user ${id}, which does not exist`);
  if (user.ended_at !== null) throw new RangeError(`it was made by the user ${id} after that user was deactivated`);
  const isVote = entry.type === "approval" && (entry.verdict === "approve" || entry.verdict === "deny");
  if (isVote && !hasScope(scopesOfRoles(user.roles), "approvals:decide"))
    throw new RangeError(`it is a vote of the user ${id}, whose roles did not include approving`);
}

/** @param origin the name of the log */
function assertSignature({ gesture, by, ...entry }: ApprovalEntry, users: Users, origin: string): void {
  if (gesture === null) return;
  const principal = by?.principal ?? "";
  const id = userOfPrincipal(principal);
  const passkey = users.get(id ?? "")?.passkeys.find((each) => each.id === gesture.credential_id);
  if (passkey === undefined)
    throw new RangeError(
      `its vote is signed with the passkey ${gesture.credential_id}, which ${principal || "no one"} did not have`,
    );
  if (entry.preview !== gesture.preview)
    throw new RangeError("its vote records a different preview than the one that was signed");
  const fault = findGestureFault(origin, { ...entry, gesture }, principal, passkey, verifyPasskeySignature);
  if (fault !== null) throw new RangeError(`the signature of its vote is not valid: ${fault}`);
}
