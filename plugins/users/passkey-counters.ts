/** Signature counters of passkeys. If a counter does not increase, the authenticator may have been copied. */
import { type CoreHost, type LedgerTransaction, sha256Hex, type User, utf8 } from "../../src/core.ts";
import { Refusal, toRfc3339 } from "../../src/plugin.ts";
import { ERRORS } from "./user-errors.ts";

/**
 * Records the counter of an assertion. If the counter did not increase, records the refusal instead and returns false.
 */
export async function advancePasskeyCounter(
  host: CoreHost,
  tx: LedgerTransaction,
  user: User,
  { id, counter }: { id: string; counter: number },
): Promise<boolean> {
  const last = await readCounter(host, tx, id);
  // Accept a counter that is always 0, because authenticators without a counter report that.
  if ((counter > 0 || last > 0) && counter <= last) {
    recordCloned(tx, user);
    return false;
  }
  await writePasskeyCounter(host, tx, id, counter);
  return true;
}

/** Returns the key of a passkey's document. It contains a hash, because credential ids can be longer than a key. */
const counterKey = (passkeyId: string): string => `counter/${sha256Hex(utf8(passkeyId))}`;

async function readCounter(host: CoreHost, tx: LedgerTransaction, passkeyId: string): Promise<number> {
  return ((await host.documents.within(tx).get(counterKey(passkeyId)))?.value as number | undefined) ?? 0;
}

/** Records the counter of a passkey. */
export async function writePasskeyCounter(
  host: CoreHost,
  tx: LedgerTransaction,
  passkeyId: string,
  counter: number,
): Promise<void> {
  const documents = host.documents.within(tx);
  const key = counterKey(passkeyId);
  await documents.put(key, counter, (await documents.get(key))?.version ?? null);
}

function recordCloned(tx: LedgerTransaction, { id }: User): void {
  tx.record({
    type: "users:session",
    v: 1,
    at: toRfc3339(tx.now),
    action_id: null,
    agent_id: null,
    data: {
      change: "refused",
      session_id: null,
      user_id: id,
      method: "passkey",
      reason: "the signature counter did not increase",
    },
    by: null,
  });
}

/** Logs that the counter of a passkey went back, and returns the refusal. */
export function copiedPasskeyError(host: CoreHost, { id }: Pick<User, "id">): Refusal {
  host.log.error("a passkey was refused because its signature counter went back", { user: id });
  return new Refusal(
    ERRORS.PASSKEY_CLONED,
    "the passkey's signature counter did not increase, so there may be a copy of it; sign in with another passkey or a recovery code, and remove this one",
  );
}
