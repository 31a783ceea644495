import type { Actor } from "./entries.ts";

/** A key as the ledger names it. */
export function actorOf(key: { id: string; agent_id: string | null; owner: string | null }, principal: string): Actor {
  return { key_id: key.id, principal, agent_id: key.agent_id, owner: key.owner };
}
