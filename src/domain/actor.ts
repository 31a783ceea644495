import type { Actor } from "./entries.ts";

/** Returns a key and its principal in the form of ledger entries. */
export function toActor(key: { id: string; agent_id: string | null; owner: string | null }, principal: string): Actor {
  // Keep the members in canonical order, so that canonical JSON does not need to sort them.
  return { agent_id: key.agent_id, key_id: key.id, owner: key.owner, principal };
}
