/**
 * Decides whether an action's request can be erased: only if the action has ended, or counts as ended because its
 * deadlines have passed.
 */
import type { ActionStatus } from "./actions.ts";

/** A started action without a result counts as finished after this time. Milliseconds. */
const RESULT_TIMEOUT_MS = 86_400_000;

/**
 * Parts of an action that can be erased before its request, each after its own retention period. The erasure of the
 * request erases all other parts.
 */
export const ERASABLE_PARTS = ["result", "meta", "questions"] as const;
export type ErasablePart = (typeof ERASABLE_PARTS)[number];

/** The columns of an action's row that determine whether it can be erased. */
interface ErasableAction {
  status: ActionStatus;
  approved_until: number | null;
  started_at: number | null;
}

/**
 * Returns the reason why the action is still open, as the end of "it is …"; null if the action can be erased.
 * @param now the current time in milliseconds since the epoch
 */
export function findErasureBlocker({ status, approved_until, started_at }: ErasableAction, now: number): string | null {
  if (status === "pending_approval") return "pending: decide or cancel it first";
  if ((status === "allowed" || status === "approved") && approved_until !== null && approved_until > now)
    return `${status} and may still start: cancel it first, or erase it when its time to start is over`;
  if ((status === "executing" || status === "unknown") && started_at !== null && started_at + RESULT_TIMEOUT_MS > now)
    return "started without a result: erase it when its result was reported, or a day after its start";
  return null;
}
