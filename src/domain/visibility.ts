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
 * Returns true if the credential can see actions of this agent, of some tool. A credential that sees its own submissions
 * only is not limited to agents.
 */
export function canSeeAgent(visibility: Visibility, agentId: string): boolean {
  if ("within" in visibility) return visibility.within.some((limits) => includesAgent(limits, agentId));
  return !("agent_id" in visibility) || visibility.agent_id === agentId;
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

/** Returns the union of two visibilities. */
export function uniteVisibility(a: GroupVisibility, b: GroupVisibility): GroupVisibility {
  return "all" in a || "all" in b ? { all: true } : { within: [...a.within, ...b.within] };
}
