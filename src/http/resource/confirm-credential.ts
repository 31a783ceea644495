/** Checks a credential again under the ledger's lock before a change. */
import { Refusal } from "../../contract/errors.ts";
import type { Credential } from "../../contract/host.ts";
import type { LedgerTransaction } from "../../contract/ledger.ts";
import type { Scope } from "../../domain/scopes.ts";

/**
 * Returns the current credential. Rejects like `tx.confirm` if it is no longer valid, and with INSUFFICIENT_SCOPE if it
 * lacks `scope`. Includes what delegators let the user see only if `scope` is `approvals:decide`, because a delegation
 * lends only approval.
 */
export async function confirmCredential(
  tx: Pick<LedgerTransaction, "confirm">,
  credential: Credential,
  scope: Scope,
): Promise<Credential> {
  const confirmed = await tx.confirm(credential);
  if (!confirmed.hasScope(scope))
    throw new Refusal("INSUFFICIENT_SCOPE", `the key "${confirmed.key.name}" lacks the scope ${scope}`);
  return scope === "approvals:decide" ? confirmed : withoutDelegations(confirmed);
}

/** Returns the credential with the visibility that the user has without delegators. */
export function withoutDelegations(credential: Credential): Credential {
  const { session } = credential;
  return session === undefined ? credential : { ...credential, visibility: session.visibility };
}
