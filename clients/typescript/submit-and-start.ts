/** Submits a request, waits for approval and starts the action. `govern` and all adapters use it. */
import { newAttempt } from "./action-calls.ts";
import type { Assent } from "./client.ts";
import { RequestRefused, timeoutError } from "./client-errors.ts";
import { openQuestion, questionText } from "./open-question.ts";
import { explainRefusal, type RefusalOutcome } from "./refusal.ts";
import type { ActionRecord, ActionRequest } from "./action-types.ts";

export interface SubmitAndStartOptions {
  /** Metadata such as trace, session and tool call. Requests that differ only in metadata are duplicates. */
  meta?: Record<string, unknown> | undefined;
  /** Seconds to wait for an approval. Default 30. */
  approvalTimeout?: number | undefined;
  /**
   * Whether the caller runs `action.params` instead of its own copy, so that an approver's changes apply. Default
   * false: a changed request is refused.
   */
  appliesEdits?: boolean | undefined;
  /** Whether the caller lets the service inspect the output before it passes the output on. Default false. */
  inspects?: boolean | undefined;
  /** Ends the wait. The action stays submitted. */
  signal?: AbortSignal | undefined;
}

/**
 * Result of `submitAndStart`. If `state` is `started`, run the action now, once, and report the result. Otherwise the
 * action must not run.
 */
export interface StartOutcome {
  state: "started" | "pending" | "refused";
  action: ActionRecord;
  /** Kind of refusal; null unless `state` is "refused". */
  outcome: RefusalOutcome | null;
  /** Explanation that a model or a person can act on. */
  message: string;
}

/**
 * Maximum age of the response to a start, in seconds. The client discards a later response, because the process may
 * have been suspended.
 */
const LIVE_SECONDS = 60;
const DEFAULT_APPROVAL_TIMEOUT = 30;

/**
 * Submits `request` or joins an open duplicate, waits for approval, and starts the action. Throws AssentError if a call
 * fails, and the reason of an aborted signal. In both cases the action must not run.
 * @example
 * const { state, action, message } = await submitAndStart(assent, request, { approvalTimeout: 60 });
 * if (state !== "started") return message;
 */
export async function submitAndStart(
  assent: Assent,
  request: ActionRequest,
  {
    meta,
    approvalTimeout = DEFAULT_APPROVAL_TIMEOUT,
    appliesEdits = false,
    inspects,
    signal,
  }: SubmitAndStartOptions = {},
): Promise<StartOutcome> {
  const end = performance.now() + approvalTimeout * 1000;
  const remainingSeconds = () => Math.max(0, (end - performance.now()) / 1000);
  // Do not wait in `submit`: only `wait` continues after a restart of the service.
  let action = await assent.submit(request, { join: true, meta, signal });
  for (;;) {
    if (action.status === "pending_approval" && openQuestion(action) === null && remainingSeconds() > 0)
      action = await assent.wait(action.id, { timeout: remainingSeconds(), signal });
    if (action.status === "pending_approval")
      return { state: "pending", action, outcome: null, message: pendingMessage(action) };
    if (action.status !== "allowed" && action.status !== "approved") return refusedOutcome(action);
    if (action.proposed != null && !appliesEdits) return refusedOutcome(action);
    const started = await start(assent, action, inspects, signal);
    if ("action" in started) return started;
    // The second decision, made at the start, requires more approvals.
    action = started;
  }
}

/** Starts the action without the caller's signal, because an aborted start could leave an action that never runs. */
async function start(
  assent: Assent,
  { id, proposed, request_hash: requestHash }: ActionRecord,
  inspects: boolean | undefined,
  signal: AbortSignal | undefined,
): Promise<StartOutcome | ActionRecord> {
  signal?.throwIfAborted();
  const sent = { wall: Date.now(), steady: performance.now() };
  const attempt = newAttempt();
  const reportNotRun = (reason: string): Promise<unknown> =>
    assent.result(id, { success: false, error: `not run: ${reason}`, attempt }).catch(() => {});
  let action: ActionRecord;
  try {
    const edited = proposed == null || requestHash === null ? {} : { requestHash };
    action = await assent.start(id, { attempt, inspects, ...edited });
  } catch (error) {
    // The start may have succeeded although its response was lost. The attempt id ensures that this report cannot end
    // another call's run.
    if (!(error instanceof RequestRefused)) {
      void reportNotRun("the start was not confirmed");
      throw error;
    }
    const now = await assent.action(id, { signal });
    if (now.status === "executing") await reportNotRun(error.message);
    return now.status === "pending_approval" ? now : refusedOutcome(now, error);
  }
  const late = Math.max(Date.now() - sent.wall, performance.now() - sent.steady) > LIVE_SECONDS * 1000;
  if (!late && signal?.aborted !== true) return { state: "started", action, outcome: null, message: "may run" };
  const reason = late ? "the response to the start arrived too late" : "the caller aborted before the action could run";
  await reportNotRun(reason);
  signal?.throwIfAborted();
  throw timeoutError(`${reason}; nothing was run`);
}

/** @param error the reason why the service did not start the action */
function refusedOutcome(action: ActionRecord, error?: RequestRefused): StartOutcome {
  const { id, tool, operation } = action;
  const { outcome, why, next } = explainRefusal(action, error);
  const message = `Not run: ${tool} ${operation} was ${why}. ${next} [action ${id}]`;
  return { state: "refused", action, outcome, message };
}

function pendingMessage(action: ActionRecord): string {
  const { id, tool, operation } = action;
  const question = questionText(
    action,
    "through the program that runs you (`assent.answer`, or `assent answer` in a shell)",
  );
  return `Not run yet: ${tool} ${operation} waits for approval [action ${id}]. It was not refused. ${question}Call again later with exactly the same arguments; other arguments would be another request.`;
}
