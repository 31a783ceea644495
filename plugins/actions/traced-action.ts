/** Selects the data about an action that traces contain: names and outcomes, never parameters. */
import { decodeMeta } from "./meta.ts";
import { isTraceparent, type TracedAction, type TracedExecution } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";

export function tracedAction(row: ActionRow): TracedAction {
  const { id, agent_id, tool, operation, status, decision, reason_code, policy, rule } = row;
  return { id, agent_id, tool, operation, status, decision, reason_code, policy, rule, submission: submissionOf(row) };
}

/** Returns the execution of an action whose result was just reported; null for any other action. */
export function tracedExecution({ status, started_at, updated_at }: ActionRow): TracedExecution | null {
  if (started_at === null || (status !== "succeeded" && status !== "failed")) return null;
  return { started_at, ended_at: updated_at, success: status === "succeeded" };
}

function submissionOf({ meta }: ActionRow): string | null {
  let traceparent: unknown;
  try {
    ({ traceparent } = decodeMeta(meta));
  } catch {
    // Someone altered the store. The response reports it.
    return null;
  }
  return typeof traceparent === "string" && isTraceparent(traceparent) ? traceparent : null;
}
