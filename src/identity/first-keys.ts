/** Creates the first keys of an empty store, and records them like all later keys. */
import { randomBytes } from "node:crypto";
import { Refusal } from "../contract/errors.ts";
import type { Logger } from "../contract/host.ts";
import type { Ledger } from "../contract/ledger.ts";
import type { KeyRow, StorageReader } from "../contract/storage.ts";
import { SCOPE_PRESETS } from "../domain/scopes.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import { toRfc3339 } from "../domain/time.ts";
import { createEnrolmentLinkRecord, newUser } from "../domain/users.ts";
import { createKey, type KeyService } from "./keys.ts";

/** The agent that the first agent key is bound to. */
export const FIRST_AGENT = "support-bot";

/** Name of the first user. */
const FIRST_ADMIN = "admin";

/** Secrets that are displayed to the operator once. The store contains only their hashes. */
export interface FirstKeys {
  admin: string;
  agent: string;
  /** Token of the link that enrols the first admin; null if signing in is not configured. */
  link: string | null;
}

/**
 * Creates an admin key with this value, unless the store already has a key with this value. If that key was revoked, it
 * stays revoked.
 */
export async function ensureAdminKey(
  storage: StorageReader,
  ledger: Ledger,
  adminKey: string,
  newId: () => string,
): Promise<void> {
  const hash = sha256Hex(utf8(adminKey));
  // Check before the transaction, so that most starts do not write. Check again under the ledger's lock, because
  // several processes can start on the same empty store.
  if ((await storage.keyByHash(hash)) !== null) return;
  await ledger.transact(async (tx) => {
    if ((await tx.keyByHash(hash)) !== null) return;
    const isNameTaken = (await tx.keys()).some((key) => key.name === "admin" && key.revoked_at === null);
    const name = isNameTaken ? `admin-${newId().slice(-12)}` : "admin";
    tx.recordKey("created", createKey(newId(), adminKey, { name, scopes: SCOPE_PRESETS.admin }), null);
  });
}

/**
 * Creates an admin key and an agent key if the store has no keys. Displays the keys before it stores them, because a
 * crash in the opposite order would lose them. If the process ends between the two steps, the store still has no keys,
 * and the next start displays new keys. Rejects if the keys could not be displayed or stored; displayed keys are then
 * invalid.
 */
export async function createFirstKeys(
  storage: StorageReader,
  ledger: Ledger,
  keys: KeyService,
  /** The agent that the agent key is bound to; null for an unbound key. */
  agent_id: string | null,
  /** The first user, who gets an enrolment link. Null if signing in is not configured. */
  firstUser: { id: string } | null,
  show: (keys: FirstKeys) => void,
): Promise<void> {
  if ((await storage.keys()).length > 0) return;
  const admin = keys.mint({ name: "admin", scopes: SCOPE_PRESETS.admin });
  const agent = keys.mint({ name: "agent", scopes: SCOPE_PRESETS.agent, agent_id });
  const link = firstUser === null ? null : randomBytes(32).toString("base64url");
  let wereDisplayed = false;
  await ledger.transact(async (tx) => {
    // Check under the ledger's lock, so that only one of several processes on an empty store displays keys.
    if ((await tx.keys()).length > 0) {
      // An earlier run of this batch displayed keys and was rolled back. Since then, another process has stored its
      // keys.
      if (wereDisplayed)
        throw new Error("another process has stored the first keys; the keys displayed here are invalid");
      return;
    }
    if (!wereDisplayed) show({ admin: admin.value, agent: agent.value, link });
    wereDisplayed = true;
    tx.recordKey("created", admin.key, null);
    tx.recordKey("created", agent.key, null);
    if (firstUser === null || link === null) return;
    const profile = { name: FIRST_ADMIN, roles: ["admin"], groups: [], link: createEnrolmentLinkRecord(link, tx.now) };
    const user = newUser(firstUser.id, tx.now, profile);
    tx.record({
      type: "user",
      v: 1,
      at: toRfc3339(tx.now),
      change: "created",
      user,
      reason: "first start",
      confirmed_by: null,
      by: null,
    });
  });
}

/** Logs a warning if unbound keys exist. A store of an earlier version can contain keys that submit for any agent. */
export async function warnAboutUnboundKeys(
  storage: Pick<StorageReader, "keys">,
  log: Logger,
  now: number,
): Promise<void> {
  const unbound = (await storage.keys()).filter(
    ({ scopes, agent_id, revoked_at, expires_at }) =>
      agent_id === null &&
      scopes.includes("actions:submit") &&
      revoked_at === null &&
      (expires_at === null || expires_at > now),
  );
  if (unbound.length > 0)
    log.warn(
      "keys that are not bound to an agent can no longer submit: give each agent a key with agent_id, or set `agents: any` in the configuration",
      { keys: unbound.slice(0, 20).map(({ name }) => name), count: unbound.length },
    );
}

/** Creates an admin key. Rejects if an active key has this name. */
export async function addAdminKey(
  ledger: Ledger,
  keys: KeyService,
  name: string,
): Promise<{ row: KeyRow; value: string }> {
  const { key, value } = keys.mint({ name, scopes: SCOPE_PRESETS.admin });
  const row = await ledger.transact(async (tx) => {
    const namesake = (await tx.keys()).find((other) => other.name === name && other.revoked_at === null);
    if (namesake !== undefined)
      throw new Refusal("KEY_NAME_TAKEN", `an active key already has the name "${name}"; choose another name`);
    return tx.recordKey("created", key, null);
  });
  return { row, value };
}
