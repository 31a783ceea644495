/** Determines who denied an action, because the agent's next step depends on that. */
import type { ActionStatus } from "./actions.ts";
import { LANGUAGE_REASONS, type Effect, type ReasonCode } from "./policy/policy-types.ts";

export const DENIED_BY = ["policy", "person", "reviewer", "earlier_rejection", "stop"] as const;
/**
 * What denied an action. `stop` is a stop or another bar above all policies. `reviewer` is a machine reviewer. `policy` includes the service's own checks, such as a
 * suspended agent or a revoked key.
 */
export type DeniedBy = (typeof DENIED_BY)[number];

interface DeniedAction {
  status: ActionStatus;
  decision: Effect;
  reason_code: ReasonCode;
}

/** Returns who denied the action; null unless it is denied. */
export function findDeniedBy({ status, decision, reason_code }: DeniedAction): DeniedBy | null {
  if (status !== "denied") return null;
  if (reason_code === "REVIEWER_DENIED") return "reviewer";
  if (reason_code === "EARLIER_REJECTION") return "earlier_rejection";
  // A bar of a plugin denied the action.
  if (!(LANGUAGE_REASONS as readonly string[]).includes(reason_code)) return "stop";
  // Policies deny an action when it is submitted or decided again. Every other denial is a vote.
  return decision === "deny" || reason_code === "NO_LONGER_ALLOWED" ? "policy" : "person";
}
