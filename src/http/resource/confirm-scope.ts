/** What a change asks of the credential once more, under the ledger's lock. */
import { Refusal } from "../../contract/errors.ts";
import type { Credential } from "../../contract/host.ts";
import type { LedgerTransaction } from "../../contract/ledger.ts";
import type { Scope } from "../../domain/scopes.ts";

/** The credential as it stands now. Throws INVALID_CREDENTIAL when it was revoked or expired since, INSUFFICIENT_SCOPE when it lacks `scope`. */
export async function confirmWithScope(
  tx: Pick<LedgerTransaction, "confirm">,
  credential: Credential,
  scope: Scope,
): Promise<Credential> {
  const who = await tx.confirm(credential);
  if (!who.hasScope(scope))
    throw new Refusal("INSUFFICIENT_SCOPE", `the key "${who.key.name}" lacks the scope ${scope}`);
  return who;
}
