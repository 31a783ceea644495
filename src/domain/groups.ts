/** Groups of approvers, from the configuration and from sign-ins. */
import { matchesAny } from "./policy/compile/glob.ts";
import { foldName } from "./names.ts";
import { referenceKey } from "./person-reference.ts";

/**
 * Limits on the actions that the members of a group can see and approve. Patterns are case-folded; null matches
 * everything.
 */
export interface GroupLimits {
  agents: readonly string[] | null;
  tools: readonly string[] | null;
  /** The exact name of the agent that a key is bound to. Other agents are outside the limits. */
  agent_id?: string;
  /** The id of the only key or user whose submissions are within the limits. */
  submitted_by?: string;
  /** Limits that apply in addition, such as the limits of a delegation. */
  also?: GroupLimits;
}

/** A group as the configuration defines it. */
export interface GroupDefinition {
  /** References to people, `key:<id>` for a key without an owner, or `agent:<id>` for an agent. */
  members: readonly string[];
  agents?: readonly string[];
  tools?: readonly string[];
}

/** Agent, tool and submitter of an action. An entry without an action has no tool. */
export interface GroupSubject {
  agent_id: string | null;
  tool?: string | null;
  submitted_by?: string | null;
}

/**
 * Returns true if the limits include the agent and the tool. Limits on agents exclude an unknown agent, and limits on
 * tools exclude an unknown tool.
 * @example isWithinLimits({ agents: ["billing-*"], tools: null }, { agent_id: "billing-1", tool: "stripe" }) // true
 */
export function isWithinLimits({ agents, tools, also, ...bound }: GroupLimits, subject: GroupSubject): boolean {
  const { agent_id, tool = null } = subject;
  const matches = (patterns: readonly string[] | null, name: string | null): boolean =>
    patterns === null || (name !== null && matchesAny(patterns, foldName(name)));
  const isAgent = bound.agent_id === undefined || bound.agent_id === agent_id;
  const isSubmitter = bound.submitted_by === undefined || bound.submitted_by === subject.submitted_by;
  const isWithin = isAgent && isSubmitter && matches(agents, agent_id) && matches(tools, tool);
  return isWithin && (also === undefined || isWithinLimits(also, subject));
}

/** Returns limits that include only what both `a` and `b` include. */
export function intersectLimits(a: GroupLimits, b: GroupLimits): GroupLimits {
  return { ...a, also: a.also === undefined ? b : intersectLimits(a.also, b) };
}

/** Returns the limits of a group; null if the group has no limits. */
export function groupLimits({ agents, tools }: GroupDefinition): GroupLimits | null {
  if (agents === undefined && tools === undefined) return null;
  return { agents: agents?.map(foldName) ?? null, tools: tools?.map(foldName) ?? null };
}

/**
 * Returns the principal of an agent as a group member. Conditions can read an agent's groups, but an agent never votes.
 */
export const principalOfAgent = (agentId: string): string => `agent:${foldName(agentId)}`;

/**
 * Returns the form in which a group member is compared, such as `agent:bot` for `agent:Bot`; null if the text refers to
 * no person, key or agent.
 */
export function memberKey(member: string): string | null {
  if (/^agent:./.test(member)) return principalOfAgent(member.slice("agent:".length));
  return /^key:./.test(member) ? member : referenceKey(member);
}
