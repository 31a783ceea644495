import type { Actor } from "./entries.ts";

/** A key as the ledger names it. */
export function toActor(key: { id: string; agent_id: string | null; owner: string | null }, principal: string): Actor {
  // In the order of canonical JSON.
  return { agent_id: key.agent_id, key_id: key.id, owner: key.owner, principal };
}
