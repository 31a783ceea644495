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
  const existing = await storage.keys();
  if (adminKey !== null) {
    if (await storage.keyByHash(sha256Hex(utf8(adminKey))) !== null) return { admin: null, agent: null };
    const name = existing.some((key) => key.name === "admin" && key.revoked_at === null) ? `admin-${newId().slice(-12)}` : "admin";
    const row = keyRow(newId(), adminKey, { name, scopes: PRESETS.admin, now: clock() });
    await ledger.submit((tx) => createKey(tx, row));
    return { admin: null, agent: null };
  }
  if (existing.length > 0) return { admin: null, agent: null };
  const admin = keys.mint({ name: "admin", scopes: PRESETS.admin, now: clock() });
  const agent = keys.mint({ name: "agent", scopes: PRESETS.agent, now: clock() });
  await ledger.submit(async (tx) => {
    await createKey(tx, admin.row);
    await createKey(tx, agent.row);
  });
  return { admin: admin.value, agent: agent.value };
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
