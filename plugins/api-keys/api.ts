/** What this feature exports to features that name `api-keys` in `needs`. */
import { type Actor, type CoreHost, type LedgerTransaction } from "../../src/core.ts";
import type { KeyRow } from "../../src/storage/index.ts";

/**
 * Revokes a live key and cancels the first of its open actions. Returns a function that cancels the others, in as many
 * transactions as needed, to be called after the commit.
 */
export async function revokeKey(
  host: CoreHost,
  tx: LedgerTransaction,
  key: KeyRow,
  by: Actor,
): Promise<() => Promise<void>> {
  tx.recordKey("revoked", key, by);
  const reason = { by, comment: `the key "${key.name}", which submitted it, was revoked` };
  const ofKey = { key_id: key.id };
  const hasMore = await host.openActionCanceller.cancelPage(tx, ofKey, reason);
  return async () => {
    for (let more = hasMore; more;)
      more = await host.ledger.transact((next) => host.openActionCanceller.cancelPage(next, ofKey, reason));
  };
}
