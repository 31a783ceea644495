/**
 * Compares the rows of policies with the ledger before the active set changes. The active set itself needs no
 * comparison, because the sealed head contains its digest.
 */
import { Refusal } from "../contract/errors.ts";
import type { LedgerTransaction } from "../contract/ledger.ts";
import type { PolicyActivation } from "../contract/policies.ts";
import type { PolicyRow } from "../contract/storage.ts";
import { canonicalText } from "../domain/canonical.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import type { JsonValue } from "../domain/json.ts";
import { findAlteredPolicies, findRecordedDigest, recordedPolicyState } from "../domain/recorded-policies.ts";

type PolicyReader = Pick<LedgerTransaction, "policies" | "state">;

/** Returns all policies. Throws STORE_ALTERED if one differs from the ledger or is missing. */
export async function readUnalteredPolicies(tx: PolicyReader): Promise<PolicyRow[]> {
  const rows = await tx.policies();
  const [altered] = findAlteredPolicies(rows, tx.state(recordedPolicyState));
  if (altered !== undefined) throw alteredRefusal(`the policy "${altered}"`);
  return rows;
}

/** Throws STORE_ALTERED if a stored version of a policy, which is to become active, differs from the ledger. */
export function assertRecordedDefinitions(
  tx: Pick<PolicyReader, "state">,
  edits: ReadonlyMap<string, PolicyActivation | null>,
): void {
  for (const [name, edit] of edits) {
    const digest = edit === null ? null : findRecordedDigest(tx.state(recordedPolicyState), name, edit.version);
    if (edit === null || digest === null) continue;
    if (sha256Hex(utf8(canonicalText(edit.definition as unknown as JsonValue))) !== digest)
      throw alteredRefusal(`version ${edit.version} of the policy "${name}"`);
  }
}

function alteredRefusal(subject: string): Refusal {
  return new Refusal(
    "STORE_ALTERED",
    `${subject} in the store is not the one in the ledger, so the active policies were not changed; the operator has to run assent audit`,
  );
}
