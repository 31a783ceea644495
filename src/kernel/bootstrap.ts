/** What an empty store gets on its first start: keys to begin with, recorded like any other. */
import { Refusal } from "../contract/errors.ts";
import type { Ledger, LedgerTransaction } from "../contract/host.ts";
import type { KeyRow, StorageReader } from "../contract/storage.ts";
import { PRESETS } from "../domain/scopes.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import { toRfc3339 } from "../domain/time.ts";
import { keyRow, type KeyService } from "./keys.ts";

/** Values that exist nowhere else. They are shown to the operator once and never logged. */
export interface FirstKeys {
  admin: string | null;
  agent: string | null;
}

/**
 * Without `adminKey` an empty store gets an admin and an agent key. With it, the store gets exactly
 * that admin key, unless it holds a key with this value already (a revoked one stays revoked).
 */
export async function bootstrapKeys(
  storage: StorageReader,
  ledger: Ledger,
  keys: KeyService,
  adminKey: string | null,
  newId: () => string,
  clock: () => number,
): Promise<FirstKeys> {
  // Looked at before, so that a start that changes nothing writes nothing, and again under the ledger's lock:
  // several processes may start on one empty store.
  if (adminKey !== null) {
    const hash = sha256Hex(utf8(adminKey));
    if ((await storage.keyByHash(hash)) !== null) return { admin: null, agent: null };
    await ledger.submit(async (tx) => {
      if ((await tx.keyByHash(hash)) !== null) return;
      const taken = (await tx.keys()).some((key) => key.name === "admin" && key.revoked_at === null);
      await createKey(tx, keyRow(newId(), adminKey, { name: taken ? `admin-${newId().slice(-12)}` : "admin", scopes: PRESETS.admin, now: clock() }));
    });
    return { admin: null, agent: null };
  }
  if ((await storage.keys()).length > 0) return { admin: null, agent: null };
  const admin = keys.mint({ name: "admin", scopes: PRESETS.admin, now: clock() });
  const agent = keys.mint({ name: "agent", scopes: PRESETS.agent, now: clock() });
  const first = await ledger.submit(async (tx) => {
    if ((await tx.keys()).length > 0) return false;
    await createKey(tx, admin.row);
    await createKey(tx, agent.row);
    return true;
  });
  return first ? { admin: admin.value, agent: agent.value } : { admin: null, agent: null };
}

/** Rejects when a live key has this name. */
export async function addAdminKey(ledger: Ledger, keys: KeyService, name: string, clock: () => number): Promise<{ row: KeyRow; value: string }> {
  const minted = keys.mint({ name, scopes: PRESETS.admin, now: clock() });
  await ledger.submit(async (tx) => {
    const namesake = (await tx.keys()).find((key) => key.name === name && key.revoked_at === null);
    if (namesake !== undefined) throw new Refusal("KEY_NAME_TAKEN", `a live key is named "${name}"; choose another name`);
    await createKey(tx, minted.row);
  });
  return minted;
}

async function createKey(tx: LedgerTransaction, row: KeyRow): Promise<void> {
  await tx.insertKey(row);
  tx.record({
    type: "api_key",
    v: 1,
    at: toRfc3339(tx.now),
    change: "created",
    key: { id: row.id, name: row.name, hash: row.hash, scopes: row.scopes, agent_id: row.agent_id, owner: row.owner, expires_at: null },
    by: null,
  });
  tx.bumpEpoch();
}
