import type { Assent } from "./client.ts";
import type { ActionRecord, ActionRequest } from "./types.ts";

/** The action may not run: denied, expired or cancelled. */
export class ActionRefused extends Error {
  readonly action: ActionRecord;
  constructor(action: ActionRecord) {
    super(`${action.tool} ${action.operation} is ${action.status}: ${action.reason}`);
    this.name = "ActionRefused";
    this.action = action;
  }
}

/**
 * Submits, waits for the verdict, starts with the permit, runs, and reports how it went.
 * Throws ActionRefused when it may not run; what `run` throws is reported and thrown on.
 * @param patience seconds to wait for an approval in all; default 24 hours
 */
export async function govern<T>(
  assent: Assent,
  request: ActionRequest,
  run: (action: ActionRecord) => Promise<T>,
  patience = 86_400,
): Promise<T> {
  let action = await assent.submit(request, { idempotencyKey: crypto.randomUUID(), permit: true });
  if (action.status === "pending_approval") action = await assent.wait(action.id, { timeout: patience });
  if (action.status !== "allowed" && action.status !== "approved") throw new ActionRefused(action);
  await assent.start(action.id, { permit: action.permit ?? undefined });
  let value: T;
  try {
    value = await run(action);
  } catch (error) {
    await assent.result(action.id, { success: false, error: String(error).slice(0, 10_000) });
    throw error;
  }
  await assent.result(action.id, { success: true });
  return value;
}
