/** The actions and entries that a credential can see. */
import { type GroupLimits, intersectLimits, isWithinLimits } from "./groups.ts";

/** A visibility that the store can use as a filter. */
export type StoredVisibility = { all: true } | { agent_id: string } | { key_id: string };

/**
 * The actions and entries that a credential can see. `within` lists the limits of several groups; the credential sees a
 * subject if it is within one of them.
 */
export type Visibility = StoredVisibility | { within: readonly GroupLimits[] };

/**
 * Returns true if the credential can see the subject. `agent_id` and `submitted_by` are null for entries without an
 * action, which only unrestricted credentials can see. A credential that is limited to certain tools cannot see a
 * subject without `tool`.
 */
export function canSee(
  visibility: Visibility,
  subject: { agent_id: string | null; submitted_by: string | null; tool?: string | null },
): boolean {
  if ("all" in visibility) return true;
  if ("within" in visibility) return visibility.within.some((limits) => isWithinLimits(limits, subject));
  return "agent_id" in visibility
    ? visibility.agent_id === subject.agent_id
    : visibility.key_id === subject.submitted_by;
}

/**
 * Returns true if the credential can see the agent. If the credential sees only its own submissions, which can name any
 * agent, the limits of its groups apply.
 */
export function canSeeAgent({ visibility, limits }: AgentReader, agentId: string): boolean {
  if ("agent_id" in visibility) return visibility.agent_id === agentId;
  return isWithin("key_id" in visibility ? limits : visibility, agentId);
}

/** Returns true if the credential can administer the agent and its keys. Delegations do not extend this. */
export function canAdministerAgent({ limits }: Pick<AgentReader, "limits">, agentId: string): boolean {
  return isWithin(limits, agentId);
}

interface AgentReader {
  visibility: Visibility;
  limits: GroupVisibility;
}

function isWithin(visibility: GroupVisibility, agentId: string): boolean {
  return "all" in visibility || visibility.within.some((limits) => includesAgent(limits, agentId));
}

function includesAgent({ also, ...limits }: GroupLimits, agentId: string): boolean {
  const { submitted_by: _, ...ofAgent } = { ...limits, tools: null };
  return isWithinLimits(ofAgent, { agent_id: agentId }) && (also === undefined || includesAgent(also, agentId));
}

/** The actions that groups or a delegation let their members see. */
export type GroupVisibility = { all: true } | { within: readonly GroupLimits[] };

/** Returns the intersection of two visibilities. */
export function intersectVisibility(a: GroupVisibility, b: GroupVisibility): GroupVisibility {
  if ("all" in a) return b;
  if ("all" in b) return a;
  return { within: a.within.flatMap((limits) => b.within.map((other) => intersectLimits(limits, other))) };
}

/** All actions, but no entry without an action, because only a credential without limits sees those. */
const ALL_ACTIONS: GroupLimits = { agents: ["*"], tools: null };

/**
 * Returns the union of the user's own visibility and of the actions that delegators let the user see. A delegator
 * without limits adds all actions, but not entries without an action.
 */
export function extendVisibility(
  ownVisibility: Visibility,
  delegators: readonly { readonly visibility: GroupVisibility }[],
): Visibility {
  if (!("within" in ownVisibility)) return ownVisibility;
  const lent = delegators.flatMap(({ visibility }) => ("all" in visibility ? [ALL_ACTIONS] : visibility.within));
  return { within: [...ownVisibility.within, ...lent] };
}
