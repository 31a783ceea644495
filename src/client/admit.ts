/** Admission: ask, wait, start. Whatever may run runs behind this, and behind nothing else. */
import { newAttempt, type Assent } from "./client.ts";
import { RequestRefused, timeoutError } from "./errors.ts";
import { explainRefusal, type RefusalOutcome } from "./refusal.ts";
import type { ActionRecord, ActionRequest } from "./types.ts";

export interface AdmitOptions {
  /** Beside the request: trace, session, tool call. Asking again with another one asks for the same. */
  meta?: Record<string, unknown> | undefined;
  /** Seconds to wait for an approval. Default 30. */
  approvalTimeout?: number | undefined;
  /** Ends the waiting. What was asked stays asked. */
  signal?: AbortSignal | undefined;
}

/** `started`: run it, now and once, and report the result. Anything else: it must not run. */
export interface Admission {
  state: "started" | "pending" | "refused";
  action: ActionRecord;
  /** Which refusal it is; null unless `state` is "refused". */
  outcome: RefusalOutcome | null;
  /** Why, in words that a model or a person can act on. */
  message: string;
}

/** Seconds from the sending of a start within which its answer counts: a process can have been asleep in between. */
const LIVE = 60;
const LONGEST_WAIT = 30;
const DEFAULT_APPROVAL_TIMEOUT = 30;

/**
 * Asks for `request`, joining it where it was asked before and is open; waits for an approval; starts. Throws AssentError
 * when the service cannot say, and the reason of an aborted signal: then, too, it must not run.
 */
export async function admit(
  assent: Assent,
  request: ActionRequest,
  { meta, approvalTimeout = DEFAULT_APPROVAL_TIMEOUT, signal }: AdmitOptions = {},
): Promise<Admission> {
  const end = performance.now() + approvalTimeout * 1000;
  const left = () => Math.max(0, (end - performance.now()) / 1000);
  const wait = Math.min(LONGEST_WAIT, Math.floor(approvalTimeout));
  let action = await assent.submit(request, { join: true, meta, signal, ...(wait > 0 ? { wait } : {}) });
  for (;;) {
    if (action.status === "pending_approval" && left() > 0)
      action = await assent.wait(action.id, { timeout: left(), signal });
    if (action.status === "pending_approval")
      return { state: "pending", action, outcome: null, message: pendingMessage(action) };
    if (action.status !== "allowed" && action.status !== "approved") return refusedAdmission(action);
    const started = await start(assent, action, signal);
    if ("action" in started) return started;
    // Decided again, it wants more approvals than it had.
    action = started;
  }
}

/** Not given the caller's signal: a start that is cut off would leave an action that runs nowhere. */
async function start(
  assent: Assent,
  { id }: ActionRecord,
  signal: AbortSignal | undefined,
): Promise<Admission | ActionRecord> {
  signal?.throwIfAborted();
  const sent = { wall: Date.now(), steady: performance.now() };
  const attempt = newAttempt();
  const notRun = (why: string): Promise<unknown> =>
    assent.result(id, { success: false, error: `not run: ${why}`, attempt }).catch(() => {});
  let action: ActionRecord;
  try {
    action = await assent.start(id, { attempt });
  } catch (error) {
    // It may have begun, and only the answer is missing. Under its attempt no other call's run is ended.
    if (!(error instanceof RequestRefused)) {
      void notRun("the start was not confirmed");
      throw error;
    }
    const now = await assent.action(id, { signal });
    if (now.status === "executing") await notRun(error.message);
    return now.status === "pending_approval" ? now : refusedAdmission(now, error);
  }
  const late = Math.max(Date.now() - sent.wall, performance.now() - sent.steady) > LIVE * 1000;
  if (!late && signal?.aborted !== true) return { state: "started", action, outcome: null, message: "may run" };
  const why = late ? "the answer to the start came too late" : "the caller left before it could run";
  await notRun(why);
  signal?.throwIfAborted();
  throw timeoutError(`${why}; nothing was run`);
}

/** @param error why the service did not start it */
function refusedAdmission(action: ActionRecord, error?: RequestRefused): Admission {
  const { id, tool, operation } = action;
  const { outcome, why, next } = explainRefusal(action, error);
  const message = `Not run: ${tool} ${operation} was ${why}. ${next} [action ${id}]`;
  return { state: "refused", action, outcome, message };
}

function pendingMessage({ id, tool, operation }: ActionRecord): string {
  return `Not run yet: ${tool} ${operation} waits for approval [action ${id}]. It was not refused. Call again later with exactly the same arguments; other arguments would be another request.`;
}
