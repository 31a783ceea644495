/** The decision about one call of a hook. Whatever happens, what comes out is an answer in the host's own words. */
import { createAssent, newAttempt, RequestRefused, type ActionRecord, type Assent } from "../client/index.ts";
import { toCanonicalAction } from "./action/canonical-action.ts";
import { HookConfigError, type HookConfig } from "./hook-config.ts";
import type { HookEnvironment, HookEvent } from "./hook-event.ts";
import { needsDecision, DIALECTS, detectHost, type HookAnswer, type Host } from "./hosts/answers.ts";
import { readEvent } from "./hosts/events.ts";
import { truncate, PayloadError, readPayload, rejectAmbiguousJson, type JsonObject } from "./payload.ts";
import type { HookState } from "./hook-state.ts";
import { serviceFailureText, refusalText, pendingText } from "./refusal-texts.ts";

export interface HookRequest {
  flag: Host;
  payload: Uint8Array;
  environment: HookEnvironment;
  /** Seconds until the answer at the latest, from now. */
  deadline: number;
  /** Seconds that a call is held for an approval; null: as long as the deadline lets it. */
  maxWait: number | null;
  /** Ends when whoever asked is gone: then nothing starts. */
  signal: AbortSignal;
}

export interface DecisionDependencies {
  config(): HookConfig;
  state: HookState;
  /** Of one service as one key. Default: a new client. */
  createClient?(config: HookConfig): Assent;
}

/** An action that another call started first is not this call's: it asks again, this often. */
const MAX_SUBMISSIONS = 32;
/** Seconds that are left for the answer itself. */
const ANSWER_MARGIN = 1.5;
/** The wait before the same command is worth another try. Seconds. */
const RETRY_AFTER = 20;

export async function decideHookCall(question: HookRequest, means: DecisionDependencies): Promise<HookAnswer> {
  let host = question.flag;
  let isAsked = true;
  try {
    const { text, value: payload } = readPayload(question.payload);
    host = detectHost(payload, question.flag);
    rejectAmbiguousJson(text, needsDecision(payload));
    // Of an ambiguous text nobody can tell.
    isAsked = needsDecision(payload);
    const event = readEvent(host, payload, question.environment);
    const { allow, deny } = DIALECTS[host];
    switch (event.kind) {
      case "ignored":
        return allow();
      case "session":
        await means.state.recordSession(host, event.session, "start").catch(() => {});
        return allow();
      case "after":
        await reportResult(event, means).catch(() => {});
        return allow();
      case "before": {
        const refusal = await requestDecision(event, question, means);
        return refusal === null ? allow() : deny(refusal);
      }
    }
  } catch (error) {
    // What has run is stopped by nothing, and some hosts take a deny for the tool's answer.
    return isAsked ? DIALECTS[host].deny(denyReason(error)) : DIALECTS[host].allow();
  }
}

function denyReason(error: unknown): string {
  if (error instanceof PayloadError) return `Not run: ${error.message}, so it cannot be decided on.`;
  if (error instanceof HookConfigError)
    return `Not run: ${error.message}. Tell the user; "assent hook doctor" says more.`;
  return serviceFailureText(error);
}

/** Null when the call may run, and has been started; the reason otherwise. */
async function requestDecision(
  event: HookEvent,
  question: HookRequest,
  means: DecisionDependencies,
): Promise<string | null> {
  const end = performance.now() + (question.deadline - ANSWER_MARGIN) * 1000;
  void means.state.recordSession(event.host, event.session, "call").catch(() => {});
  const config = means.config();
  const assent = (means.createClient ?? createHookClient)(config);
  const { signal } = question;
  const agent = config.agent ?? (await fetchAgentId(assent, signal));
  const { request, remarks } = await toCanonicalAction(event, agent, question.environment);
  for (let tries = 0; tries < MAX_SUBMISSIONS && performance.now() < end; tries++) {
    let action = await assent.submit(request, { join: true, meta: actionMeta(event, remarks), signal });
    if (action.status === "pending_approval") {
      const left = Math.max(0, (end - performance.now()) / 1000);
      const timeout = Math.min(left, config.wait ?? Infinity, question.maxWait ?? Infinity);
      action = await assent.wait(action.id, { timeout, signal });
      if (action.status === "pending_approval") return pendingText(action, RETRY_AFTER);
    }
    if (["denied", "expired", "cancelled"].includes(action.status)) return refusalText(action);
    if (action.status !== "allowed" && action.status !== "approved") continue;
    if (await startAction(assent, action, end, signal)) {
      if (signal.aborted || performance.now() > end + ANSWER_MARGIN * 1000) {
        // Nobody is there to hear it, so it does not run.
        await assent.result(action.id, { success: false, error: "not run: the agent had stopped waiting" });
        throw new PayloadError("the answer came too late");
      }
      await means.state.saveAction(event.host, event.session, event.callId, action.id).catch(() => {});
      return null;
    }
  }
  if (performance.now() >= end) return "Not run: there was no time left to ask. Repeat the same command.";
  return "Not run: other calls took the same approval first. Try again.";
}

/** Whether this call is the one that started it. */
async function startAction(assent: Assent, action: ActionRecord, end: number, signal: AbortSignal): Promise<boolean> {
  // A start that the agent would no longer hear of must not be made.
  if (performance.now() >= end || signal.aborted) throw new PayloadError("the answer came too late");
  const attempt = newAttempt();
  try {
    const started = await assent.start(action.id, { permit: action.permit ?? undefined, attempt, signal });
    return started.status === "executing";
  } catch (error) {
    if (error instanceof RequestRefused && error.code === "ACTION_NOT_STARTABLE") return false;
    // It may have begun, and only the answer is missing. Of a start that another call made this ends nothing.
    if (!(error instanceof RequestRefused))
      void assent
        .result(action.id, { success: false, error: "not run: the start was not confirmed", attempt })
        .catch(() => {});
    throw error;
  }
}

function createHookClient({ url, apiKey }: HookConfig): Assent {
  return createAssent({ url, apiKey, timeout: 5, retries: 1 });
}

async function fetchAgentId(assent: Assent, signal: AbortSignal): Promise<string> {
  try {
    return await assent.agent({ signal });
  } catch (error) {
    if (!(error instanceof RequestRefused && error.code === "AGENT_UNBOUND")) throw error;
    throw new HookConfigError("the hook's key is bound to no agent; name one in its configuration (agent)");
  }
}

/** Bytes of JSON that the service takes beside a request. */
const MAX_META_BYTES = 4_000;

/** Beside the request: other in each call, so that the next try of the same command joins. */
function actionMeta({ host, session, callId: call, tool }: HookEvent, remarks: JsonObject): JsonObject {
  const members = Object.entries({ source: "hook", host, session, tool_call_id: call, host_tool: tool, ...remarks })
    .filter(([, value]) => value !== null)
    .slice(0, 12);
  const upTo = (longest: number): JsonObject =>
    Object.fromEntries(members.map(([name, value]) => [name, truncate(String(value), longest)]));
  const whole = upTo(300);
  return Buffer.byteLength(JSON.stringify(whole)) <= MAX_META_BYTES ? whole : upTo(50);
}

async function reportResult(event: HookEvent, means: DecisionDependencies): Promise<void> {
  const id = await means.state.takeAction(event.host, event.session, event.callId);
  if (id === null) return;
  const assent = (means.createClient ?? createHookClient)(means.config());
  await assent.result(
    id,
    event.success
      ? // Not every host tells how a call went: then its end is all that is known.
        { success: true, meta: { outcome: event.outcomeReported ? "success" : "ended" } }
      : { success: false, error: "the tool reported a failure" },
  );
}
