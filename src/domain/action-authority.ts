/**
 * The authority of an action, in the form that its row and its permits contain. The decision's facts contain its terms.
 */
import { canonicalText } from "./canonical.ts";
import type { JsonValue } from "./json.ts";
import type { AuthorityLink, Facts } from "./policy/policy-types.ts";

export interface ActionAuthority {
  id: string;
  /** The authority and its ancestors, root first, each with the agent and key that gave it. */
  links: Pick<AuthorityLink, "id" | "agent_id" | "key_id" | "owner" | "principal">[];
}

/** Returns the column of the action's row: canonical JSON, or null if the request names no authority. */
export function encodeAuthority({ authority }: Pick<Facts, "authority">): string | null {
  if (authority === undefined) return null;
  const links = authority.links.map(({ id, agent_id, key_id, owner, principal }) => ({
    agent_id,
    id,
    key_id,
    owner,
    principal,
  }));
  return canonicalText({ id: authority.id, links } as unknown as JsonValue);
}

/**
 * Returns the text with which the `authority` column of each action under this authority begins.
 * @example
 * authorityPrefix("a1"); // `{"id":"a1",`
 */
export const authorityPrefix = (id: string): string => `{"id":${canonicalText(id)},`;

/** Decodes the column. Returns null if there is no authority, or if someone altered the row. */
export function decodeAuthority(text: string | null | undefined): ActionAuthority | null {
  try {
    const value = JSON.parse(text ?? "null") as ActionAuthority | null;
    return value !== null && Array.isArray(value.links) ? value : null;
  } catch {
    return null;
  }
}

/** The claim `act` of RFC 8693, section 4.1. */
export interface ActorClaim {
  sub: string;
  act?: ActorClaim;
}

/** Returns the agent that acts. Its `act` is the agent that gave it the authority, and so on up to the root. */
export function toActorClaim(agentId: string, { links }: Pick<ActionAuthority, "links">): ActorClaim {
  const agents = [...links.map(({ agent_id }) => agent_id), agentId];
  return agents.reduce<ActorClaim | undefined>(
    (act, sub) => (act === undefined ? { sub } : { sub, act }),
    undefined,
  ) as ActorClaim;
}
