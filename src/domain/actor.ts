import type { Actor } from "./entries.ts";

/** Returns the ledger's form of a key and its principal. */
export function toActor(key: { id: string; agent_id: string | null; owner: string | null }, principal: string): Actor {
  // Members are in canonical order, so that canonical JSON needs no sorting.
  return { agent_id: key.agent_id, key_id: key.id, owner: key.owner, principal };
}
