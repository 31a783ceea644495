/** Evaluates one tool call. Every outcome, including an error, is an answer in the host's format. */
import {
  AssentError,
  createAssent,
  newAttempt,
  openQuestion,
  RequestRefused,
  type ActionRecord,
  type Assent,
} from "../typescript/index.ts";
import { parseAnswerCommand, sendAnswer } from "./answer-command.ts";
import { toCanonicalAction } from "./action/canonical-action.ts";
import { configForSubAgent, HookConfigError, type HookConfig } from "./hook-config.ts";
import type { HookEnvironment, HookEvent } from "./hook-event.ts";
import { needsDecision, HOST_DIALECTS, detectHost, type HookAnswer, type Host } from "./hosts/answers.ts";
import { readEvent } from "./hosts/host-events.ts";
import { truncate, PayloadError, readPayload, rejectAmbiguousJson, type JsonObject } from "./payload.ts";
import type { HookState } from "./hook-state.ts";
import { serviceFailureText, refusalText, pendingText, unreachableText } from "./refusal-texts.ts";
import { inspectToolOutput } from "./inspect-output.ts";
import { isActionOfCall, requestMembers, settlingReason } from "./settled-calls.ts";

interface HookRequest {
  flag: Host;
  payload: Uint8Array;
  environment: HookEnvironment;
  /** Time limit for the answer, in seconds from now. */
  deadline: number;
  /** Seconds that a call waits for approval; null to wait until the deadline. */
  maxWait: number | null;
  /** Aborts when the caller disconnects, so that the call does not start. */
  signal: AbortSignal;
}

interface DecisionDependencies {
  /** The configuration for calls of the host's main agent. */
  config(): HookConfig;
  state: HookState;
  /** Creates the client for a service and key. Default: `createHookClient`. */
  createClient?(config: HookConfig, session?: string): Assent;
  /** Starts the service of the configuration. Resolves to whether it is ready. */
  startService?(config: HookConfig, timeoutMs: number): Promise<boolean>;
}

/** Maximum number of submissions of a call. A call is submitted again if another call has started its action first. */
const MAX_SUBMISSIONS = 32;
/** Seconds reserved for writing the answer. */
const ANSWER_MARGIN = 1.5;
/** Seconds until the agent should repeat the same command. */
const RETRY_AFTER = 20;

/** The answer to a call. `settled` is the reason to run it without the host's own prompt; null if there is none. */
type CallDecision = { refusal: string } | { settled: string | null };

export async function decideHookCall(question: HookRequest, dependencies: DecisionDependencies): Promise<HookAnswer> {
  let host = question.flag;
  let mustDecide = true;
  try {
    const { text, value: payload } = readPayload(question.payload);
    host = detectHost(payload, question.flag);
    rejectAmbiguousJson(text, needsDecision(payload));
    // Set this only after the check: ambiguous JSON does not determine the event, so the event must be denied.
    mustDecide = needsDecision(payload);
    const event = readEvent(host, payload, question.environment);
    const { allow, allowPrompt, deny, pass } = HOST_DIALECTS[host];
    switch (event.kind) {
      case "ignored":
        return pass();
      case "session":
        await dependencies.state.recordSession(host, event.session, "start").catch(() => {});
        return pass();
      case "after":
      case "refused":
        return await endCall(event, payload, dependencies);
      case "prompt": {
        // The arguments that the host is about to run must be those that were decided, however they are parsed.
        rejectAmbiguousJson(text, true);
        if (allowPrompt === undefined) return pass();
        const reason = await settlePrompt(event, question, dependencies);
        return reason === null ? pass() : allowPrompt(reason);
      }
      case "before": {
        const decision = await decideOrStartService(event, question, dependencies);
        if ("refusal" in decision) return deny(decision.refusal);
        return decision.settled === null || allow === undefined ? pass() : allow(decision.settled);
      }
    }
  } catch (error) {
    // Do not deny an event that follows a call: the call has already run, and some hosts display a denial as the tool's
    // output. Do not deny the host's question either, because its user can still answer it.
    return mustDecide ? HOST_DIALECTS[host].deny(denyReason(error)) : HOST_DIALECTS[host].pass();
  }
}

function denyReason(error: unknown): string {
  if (error instanceof PayloadError) return `Not run: ${error.message}, so it cannot be decided.`;
  if (error instanceof HookConfigError)
    return `Not run: ${error.message}. Tell the user; "assent hook doctor" finds the cause.`;
  return serviceFailureText(error);
}

/** Decides a call. If the service does not respond and the hook can start it, starts it and decides again. */
async function decideOrStartService(
  event: HookEvent,
  question: HookRequest,
  dependencies: DecisionDependencies,
): Promise<CallDecision> {
  const deadline = performance.now() + (question.deadline - ANSWER_MARGIN) * 1000;
  void dependencies.state.recordSession(event.host, event.session, "call").catch(() => {});
  const config = configFor(event, dependencies);
  const decide = (): Promise<CallDecision> => requestDecision(event, question, dependencies, config, deadline);
  try {
    return await decide();
  } catch (error) {
    if (!(error instanceof AssentError && error.code === "UNREACHABLE")) throw error;
    if (!(await dependencies.startService?.(config, deadline - performance.now())))
      return { refusal: unreachableText(config) };
    return decide();
  }
}

/** Requests a decision about a call. If the call may run, starts its action. */
async function requestDecision(
  event: HookEvent,
  question: HookRequest,
  dependencies: DecisionDependencies,
  config: HookConfig,
  deadline: number,
): Promise<CallDecision> {
  // The session id comes from the host, not from the agent.
  const session = config.sessions && event.session !== null ? `${event.host}:${event.session}` : undefined;
  const assent = (dependencies.createClient ?? createHookClient)(config, session);
  const { signal } = question;
  const { request, remarks, created, workspace } = await readAction(
    event,
    question,
    dependencies.state,
    config,
    assent,
  );
  const given = parseAnswerCommand(request);
  if (given !== null) return { refusal: await sendAnswer(assent, given, signal) };
  for (let submissions = 0; submissions < MAX_SUBMISSIONS && performance.now() < deadline; submissions++) {
    let action = await assent.submit(request, { join: true, meta: actionMeta(event, remarks), signal });
    if (action.status === "pending_approval" && openQuestion(action) === null) {
      const remaining = Math.max(0, (deadline - performance.now()) / 1000);
      const timeout = Math.min(remaining, config.wait ?? Infinity, question.maxWait ?? Infinity);
      action = await assent.wait(action.id, { timeout, signal });
    }
    if (action.status === "pending_approval") return { refusal: pendingText(action, RETRY_AFTER) };
    if (["denied", "expired", "cancelled"].includes(action.status)) return { refusal: refusalText(action) };
    if (action.status !== "allowed" && action.status !== "approved") continue;
    // Refuse the call, because the host would run the agent's arguments instead of the arguments that an approver
    // changed.
    if (action.proposed != null) return { refusal: refusalText(action) };
    const canReplace = HOST_DIALECTS[event.host].replaceOutput !== undefined;
    const started = await startAction(assent, action, canReplace, deadline, signal);
    if (started !== null) {
      if (signal.aborted || performance.now() > deadline + ANSWER_MARGIN * 1000) {
        // Report a failure, because the call does not run if the caller cannot read the answer.
        await assent.result(action.id, { success: false, error: "not run: the agent had stopped waiting" });
        throw new PayloadError("the decision came too late");
      }
      const { state } = dependencies;
      const inspects = started.inspect === true || action.inspect === true;
      const isSaved = await state.saveAction(event.host, event.session, event.callId, action.id, inspects).then(
        () => true,
        () => false,
      );
      const isFound = isSaved && event.session !== null && event.callId !== null;
      if (inspects && !isFound && canReplace) {
        // The event after the call could not be assigned to the action, so the output would not be inspected.
        await assent.result(action.id, { success: false, error: "not run: its output could not be inspected" });
        return { refusal: UNINSPECTED };
      }
      if (HOST_DIALECTS[event.host].allowPrompt !== undefined)
        await state.saveDecision(event.host, event.session, requestMembers(request), action.id).catch(() => {});
      // A person may have approved a copy of a secret, so a file of an approved command is not the agent's own.
      if (workspace !== null && (action.status === "allowed" || request.tool === "files"))
        await state.addOwnFiles(workspace, created).catch(() => {});
      return { settled: settlingReason(action, event) };
    }
  }
  if (performance.now() >= deadline)
    return { refusal: "Not run: there was no time left for a decision. Repeat the same command." };
  return { refusal: "Not run: other calls used the same approval first. Try again." };
}

const UNINSPECTED =
  "Not run: rules inspect what this call returns, and the hook could not assign the output to the call. Tell the user to " +
  "free disk space, or to make the folder of the hook's state writable; a host that sends no id of its calls cannot run them.";

/** Start of the description with which Codex asks whether a command may use the network. */
const NETWORK_PROMPT = "network-access ";

/**
 * Returns the reason to answer the host's prompt about a call in place of its user; null to let the user answer. Only
 * the decision on the same call settles the prompt: the action that the hook started a moment ago, in the same session
 * and for the same request. The decision comes from the service, not from a file of the user.
 */
async function settlePrompt(
  event: HookEvent,
  question: HookRequest,
  dependencies: DecisionDependencies,
): Promise<string | null> {
  const { state } = dependencies;
  const config = configFor(event, dependencies);
  const assent = (dependencies.createClient ?? createHookClient)(config);
  const { request, remarks } = await readAction(event, question, state, config, assent);
  // This question is about an address, which the decision about the command did not name.
  const { description } = remarks;
  if (typeof description === "string" && description.startsWith(NETWORK_PROMPT)) return null;
  const id = await state.takeDecision(event.host, event.session, requestMembers(request));
  if (id === null) return null;
  // No host sends the id of the call yet. If one does, the id must be that of the decision.
  const { callId } = event;
  if (callId !== null && (await state.actionOf(event.host, event.session, callId)) !== id) return null;
  const action = await assent.action(id, { signal: question.signal });
  if (!isActionOfCall(action, request, event)) return null;
  const reason = settlingReason(action, event, HOST_DIALECTS[event.host].promptOverridesRules);
  if (reason === null) await state.savePrompt(id);
  return reason;
}

/** Builds the action of a call, for the configured agent or else for the agent that the key is bound to. */
async function readAction(
  event: HookEvent,
  { environment, signal }: HookRequest,
  state: HookState,
  config: HookConfig,
  assent: Assent,
): ReturnType<typeof toCanonicalAction> {
  const agent = config.agent ?? (await fetchAgentId(assent, signal));
  return toCanonicalAction(event, agent, { ...environment, ownFiles: (folder) => state.ownFiles(folder) });
}

/**
 * Starts the action. Resolves to null if it cannot be started any more, for example because another call started it.
 */
async function startAction(
  assent: Assent,
  action: ActionRecord,
  inspects: boolean,
  deadline: number,
  signal: AbortSignal,
): Promise<ActionRecord | null> {
  // Do not start an action if the agent no longer waits.
  if (performance.now() >= deadline || signal.aborted) throw new PayloadError("the decision came too late");
  const attempt = newAttempt();
  try {
    const how = { permit: action.permit ?? undefined, attempt, inspects, signal };
    const started = await assent.start(action.id, how);
    return started.status === "executing" ? started : null;
  } catch (error) {
    if (error instanceof RequestRefused && error.code === "ACTION_NOT_STARTABLE") return null;
    // The start may have been recorded even though its response was lost. This report ends the action in that case. If
    // another call started the action, the attempt differs, and the report has no effect.
    if (!(error instanceof RequestRefused))
      void assent
        .result(action.id, { success: false, error: "not run: the start was not confirmed", attempt })
        .catch(() => {});
    throw error;
  }
}

const configFor = ({ subAgent }: HookEvent, { config }: DecisionDependencies): HookConfig =>
  configForSubAgent(config(), subAgent?.type ?? null);

function createHookClient({ url, apiKey, authority }: HookConfig, session?: string): Assent {
  return createAssent({ url, apiKey, authority, session, timeout: 5, retries: 1 });
}

async function fetchAgentId(assent: Assent, signal: AbortSignal): Promise<string> {
  try {
    return await assent.agent({ signal });
  } catch (error) {
    if (!(error instanceof RequestRefused && error.code === "AGENT_UNBOUND")) throw error;
    throw new HookConfigError("the hook's key is not bound to an agent; set `agent` in the hook's configuration");
  }
}

/** Maximum size of `meta`. Bytes of JSON. */
const MAX_META_BYTES = 4_000;

/**
 * Returns facts about the call for the record. They are not part of the request: they differ in each call, but a
 * repeated command must join the same action.
 */
function actionMeta({ host, session, subAgent, callId: call, tool }: HookEvent, remarks: JsonObject): JsonObject {
  const ids = { source: "hook", host, session, tool_call_id: call, host_tool: tool };
  const members = Object.entries({ ...ids, sub_agent: subAgent?.type, sub_agent_id: subAgent?.id, ...remarks })
    .filter(([, value]) => value !== null && value !== undefined)
    .slice(0, 14);
  const truncated = (maxLength: number): JsonObject =>
    Object.fromEntries(members.map(([name, value]) => [name, truncate(String(value), maxLength)]));
  const full = truncated(300);
  return Buffer.byteLength(JSON.stringify(full)) <= MAX_META_BYTES ? full : truncated(50);
}

/** Ends the action of a call that has run or that the host refused. Replaces an output that the agent must not read. */
async function endCall(event: HookEvent, payload: JsonObject, dependencies: DecisionDependencies): Promise<HookAnswer> {
  const { pass, replaceOutput } = HOST_DIALECTS[event.host];
  const { host, session, callId } = event;
  const call = await dependencies.state.takeAction(host, session, callId).catch(() => null);
  if (call === null) return pass();
  let created: Assent | undefined;
  // Inspect and report with the same client, because its report includes the kept members of the output.
  const client = (): Assent =>
    (created ??= (dependencies.createClient ?? createHookClient)(configFor(event, dependencies)));
  const isReplaceable = call.inspects && replaceOutput !== undefined && Object.hasOwn(payload, "tool_response");
  const replaced = isReplaceable ? await inspectToolOutput(client, call.id, payload["tool_response"]) : null;
  // A result without an inspection adds the labels of all rules that apply.
  await reportResult(event, call.id, client, dependencies.state).catch(() => {});
  return replaced === null || replaceOutput === undefined ? pass() : replaceOutput(replaced);
}

async function reportResult(event: HookEvent, id: string, client: () => Assent, state: HookState): Promise<void> {
  const wasPrompted = await state.takePrompt(id);
  const assent = client();
  if (event.refusal !== undefined)
    await assent.result(id, {
      success: false,
      error: truncate(`not run: ${event.host} refused the call: ${event.refusal}`, MAX_REFUSAL),
      meta: { host_prompt: "refused" },
    });
  else {
    const prompt = wasPrompted ? { host_prompt: "accepted" } : {};
    const usage = event.usage === undefined ? {} : { usage: event.usage };
    await assent.result(
      id,
      event.success
        ? // Some hosts do not report the outcome. The report then only says that the call has ended.
          { success: true, meta: { outcome: event.outcomeReported ? "success" : "ended", ...prompt }, ...usage }
        : { success: false, error: "the tool reported a failure", ...(wasPrompted ? { meta: prompt } : {}), ...usage },
    );
  }
}

/** Maximum number of characters of a refusal by the host in a result. */
const MAX_REFUSAL = 500;
