/** When what was asked may be taken out of the store: not while anything can still come of it. */
import type { ActionStatus } from "./actions.ts";

/** An action that was started and not heard of for so long is taken to be over. Milliseconds. */
export const RESULT_TIMEOUT_MS = 86_400_000;

/** Of an action's row. */
export interface ErasableAction {
  status: ActionStatus;
  approved_until: number | null;
  started_at: number | null;
}

/** Null when the action is over; else what it waits for, as the end of "it is …". @param now milliseconds */
export function findErasureBlocker({ status, approved_until, started_at }: ErasableAction, now: number): string | null {
  if (status === "pending_approval") return "pending: decide or cancel it first";
  if ((status === "allowed" || status === "approved") && approved_until !== null && approved_until > now)
    return `${status} and may still start: cancel it first, or erase it when its time to start is over`;
  if (status === "executing" && started_at !== null && started_at + RESULT_TIMEOUT_MS > now)
    return "executing: erase it when its result was reported, or a day after its start";
  return null;
}
