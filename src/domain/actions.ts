import type { JsonObject } from "./json.ts";

/** The action that an agent requests. `request_hash` covers exactly these members. */
export interface ActionRequest {
  agent_id: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context: JsonObject;
}

export type ActionStatus =
  | "allowed"
  | "denied"
  | "pending_approval"
  | "approved"
  | "expired"
  | "cancelled"
  | "executing"
  /** The action was started, and no result was reported in time. */
  | "unknown"
  | "succeeded"
  | "failed";

export const ACTION_STATUSES: readonly ActionStatus[] = [
  "allowed",
  "denied",
  "pending_approval",
  "approved",
  "expired",
  "cancelled",
  "executing",
  "unknown",
  "succeeded",
  "failed",
];

/** The states that can follow each state. A state with an empty list is final. */
const TRANSITIONS: Readonly<Record<ActionStatus, readonly ActionStatus[]>> = {
  pending_approval: ["approved", "denied", "expired", "cancelled"],
  allowed: ["executing", "denied", "cancelled", "pending_approval"],
  approved: ["executing", "denied", "cancelled", "pending_approval", "expired"],
  executing: ["succeeded", "failed", "unknown"],
  unknown: ["succeeded", "failed"],
  denied: [],
  expired: [],
  cancelled: [],
  succeeded: [],
  failed: [],
};

export function canTransition(from: ActionStatus, to: ActionStatus): boolean {
  return TRANSITIONS[from].includes(to);
}

/**
 * Returns the status at `now` (milliseconds). An action whose deadline has passed counts as expired, even if its stored
 * status has not been updated.
 */
export function actionStatusAt(
  {
    status,
    expires_at,
    approved_until,
  }: { status: ActionStatus; expires_at: number | null; approved_until: number | null },
  now: number,
): ActionStatus {
  const deadline = status === "pending_approval" ? expires_at : status === "approved" ? approved_until : null;
  return deadline !== null && deadline <= now ? "expired" : status;
}
