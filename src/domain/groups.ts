/** Groups of approvers, from the configuration and from sign-ins. */
import { principalOfOwner } from "./owner.ts";
import { matchesAny } from "./policy/compile/glob.ts";
import { foldName } from "./names.ts";

/** Limits on what the members of a group may see and approve. Patterns are case-folded; null matches everything. */
export interface GroupLimits {
  agents: readonly string[] | null;
  tools: readonly string[] | null;
  /** The agent to which a key is bound, with its exact name: no other agent is within the limits. */
  agent_id?: string;
  /** Limits that apply in addition, such as those of a delegation. */
  also?: GroupLimits;
}

/** A group as the configuration defines it. */
export interface GroupDefinition {
  /** Owners, `user:<id>` for users, or `key:<id>` for a key without an owner. */
  members: readonly string[];
  agents?: readonly string[];
  tools?: readonly string[];
}

/** Agent and tool of an action. An entry without an action has no tool. */
export interface GroupSubject {
  agent_id: string | null;
  tool?: string | null;
}

/**
 * Whether the limits include the agent and the tool. An unknown agent or tool is included only if the limits name none.
 *
 * @example isWithinLimits({ agents: ["billing-*"], tools: null }, { agent_id: "billing-1", tool: "stripe" }) // true
 */
export function isWithinLimits({ agents, tools, also, ...bound }: GroupLimits, subject: GroupSubject): boolean {
  const { agent_id, tool = null } = subject;
  const matches = (patterns: readonly string[] | null, name: string | null): boolean =>
    patterns === null || (name !== null && matchesAny(patterns, foldName(name)));
  const isAgent = bound.agent_id === undefined || bound.agent_id === agent_id;
  const isWithin = isAgent && matches(agents, agent_id) && matches(tools, tool);
  return isWithin && (also === undefined || isWithinLimits(also, subject));
}

/** Returns limits that include what both `a` and `b` include. */
export function intersectLimits(a: GroupLimits, b: GroupLimits): GroupLimits {
  return { ...a, also: a.also === undefined ? b : intersectLimits(a.also, b) };
}

/** Returns the limits of a group; null if it has none. */
export function groupLimits({ agents, tools }: GroupDefinition): GroupLimits | null {
  if (agents === undefined && tools === undefined) return null;
  return { agents: agents?.map(foldName) ?? null, tools: tools?.map(foldName) ?? null };
}

/** Returns an agent as the member of a group. Its groups are an attribute for conditions: an agent never votes. */
export const principalOfAgent = (agentId: string): string => `agent:${foldName(agentId)}`;

/** Returns the principal of a member: `owner:ada` for `Ada`; `key:0193…` and `user:0193…` unchanged; `agent:bot` for `agent:Bot`. */
export function principalOfMember(member: string): string {
  if (member.startsWith("agent:")) return principalOfAgent(member.slice("agent:".length));
  return /^(?:key|user):/.test(member) ? member : principalOfOwner(member);
}
