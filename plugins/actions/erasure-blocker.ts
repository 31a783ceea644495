/**
 * Decides whether an action's request can be erased: only if the action has ended, or counts as ended because its
 * deadlines have passed.
 */
import type { ActionRow } from "../../src/storage/index.ts";

/** A started action without a result counts as finished after this time. Milliseconds. */
const RESULT_TIMEOUT_MS = 86_400_000;

/**
 * Returns the reason why the action is still open, as the end of "it is …"; null if the action can be erased.
 * @param now the current time in milliseconds since the epoch
 */
export function findErasureBlocker(
  { status, approved_until, started_at }: Pick<ActionRow, "status" | "approved_until" | "started_at">,
  now: number,
): string | null {
  if (status === "pending_approval") return "pending: decide or cancel it first";
  if ((status === "allowed" || status === "approved") && approved_until !== null && approved_until > now)
    return `${status} and may still start: cancel it first, or erase it when its time to start is over`;
  if ((status === "executing" || status === "unknown") && started_at !== null && started_at + RESULT_TIMEOUT_MS > now)
    return "started without a result: erase it when its result was reported, or a day after its start";
  return null;
}
