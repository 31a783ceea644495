/** Runs one governed request: requests a decision, starts the action, forwards the request, and reports the result. */
import { clipText } from "../../../src/domain/text.ts";
import { AUTHORITY_KEY, readCallMeta } from "./call-meta.ts";
import { MARK, markText } from "./mark.ts";
import { fillCredentialHeaders } from "./credential-headers.ts";
import type { Caller } from "../clients/caller.ts";
import type { CallGate, RecheckCall, ToolCall } from "./decide-call.ts";
import {
  errorReply,
  isObject,
  readMeta,
  withMeta,
  type RequestId,
  type JsonObject,
  type Reply,
} from "../transport/rpc-message.ts";
import { NotSentError, readErrorMessage, RequestCancelledError, rethrowAsLost } from "../transport/peer.ts";
import { proxyRefusal, refusalToolResult, serverDisconnectedRefusal, type ToolRefusal } from "./refusal-result.ts";
import { inspectReply } from "./inspect-reply.ts";
import type { Tool } from "../tools/tool-catalog.ts";
import { followServerTask } from "./server-task.ts";
import type { AnswerQuestions, Upstream } from "../upstreams/upstream.ts";

/**
 * JSON-RPC error code of a refusal, for requests whose result cannot express a refusal. It is outside the range that
 * MCP reserves.
 */
const REFUSED_CODE = -32010;
/** Timeout for cancelling a task at a server. Milliseconds. */
const CANCEL_TIMEOUT_MS = 5000;
/** Maximum size of the recorded `_meta`. Bytes of JSON. */
const MAX_META_BYTES = 2048;

export interface UpstreamCall {
  upstream: Upstream;
  method: string;
  /** Parameters that the server receives. */
  params: JsonObject;
  id: RequestId;
  operation: string;
  /** Parameters that policies see. */
  decidedParams: JsonObject;
  /** Additional headers, for servers that are called over HTTP. */
  headers?: Readonly<Record<string, string>>;
  context: JsonObject;
  /** Returns the call with the arguments that an approver changed. Absent if the arguments cannot be changed. */
  withArguments?(changed: JsonObject): Pick<UpstreamCall, "params" | "headers">;
  /** Called for a last check before the call starts. */
  recheck?: RecheckCall;
}

export interface DecisionOptions {
  gate: CallGate;
  session: string;
  /** Whether tool lists omit tools that the policies always deny. */
  hideDenied: boolean;
  /** Whether clients see the proxy's tools about authority. */
  offerAuthority: boolean;
}

export function toToolCall(
  { upstream, operation, decidedParams: subject, context, id, params, withArguments }: UpstreamCall,
  { info }: Caller,
  options: DecisionOptions,
): ToolCall {
  const callMeta = readMeta(params);
  const { decided, recorded: remarks } = readCallMeta(callMeta, upstream.config.meta);
  const { traceparent, ...otherMeta } = remarks;
  return {
    tool: upstream.config.tool,
    operation,
    authority: callMeta[AUTHORITY_KEY],
    appliesEdits: withArguments !== undefined,
    params: subject,
    context:
      Object.keys(decided).length === 0 ? context : { ...context, mcp: { ...mcpContext(context), meta: decided } },
    meta: {
      ...(typeof traceparent === "string" ? { traceparent: clipText(traceparent, 100) } : {}),
      mcp: {
        client: { name: clip(info["name"]), version: clip(info["version"]) },
        session: options.session,
        request_id: typeof id === "string" ? clip(id) : id,
        ...recordedMeta(otherMeta),
      },
    },
  };
}

const mcpContext = ({ mcp }: JsonObject): JsonObject => (isObject(mcp) ? mcp : {});

const clip = (value: unknown): string | null => (typeof value === "string" ? clipText(value, 100) : null);

/**
 * Returns the client's other `_meta` members, such as the model's tool-call id, for the record. Omits them if they are
 * too large.
 */
function recordedMeta(otherMeta: JsonObject): JsonObject {
  const size = Buffer.byteLength(JSON.stringify(otherMeta));
  return size <= 2 || size > MAX_META_BYTES ? {} : { meta: otherMeta };
}

/** Forwards a request that was decided or that requires no decision. */
export async function forwardCall(
  { upstream, method, params, headers }: UpstreamCall,
  caller: Caller,
  ask: AnswerQuestions,
  keys: readonly string[],
  credentialHeaders?: Readonly<Record<string, string>>,
): Promise<Reply> {
  const options = {
    signal: caller.signal,
    capabilities: caller.capabilities,
    logLevel: caller.logLevel,
    ask,
    ...(caller.wantsProgress ? { onprogress: (progress: JsonObject) => caller.sendProgress(progress) } : {}),
  };
  const { sent } = readCallMeta(readMeta(params), keys);
  const reply = await upstream.request(method, withMeta(params, sent), { ...options, headers, credentialHeaders });
  if ("error" in reply) return reply;
  if (reply.result["resultType"] === "task") return followServerTask(upstream, reply.result, caller, ask);
  if (params["task"] === undefined) return reply;
  const { task } = reply.result;
  if (!isObject(task) || typeof task["taskId"] !== "string") return reply;
  // The server runs the call as a task. Wait for its result, because the client sees a different task, which belongs to
  // the proxy.
  const { taskId } = task;
  try {
    return await upstream.request("tasks/result", { taskId }, options).catch(rethrowAsLost);
  } catch (error) {
    const timeout = AbortSignal.timeout(CANCEL_TIMEOUT_MS);
    void upstream.request("tasks/cancel", { taskId }, { ask, signal: timeout }).catch(() => {});
    throw error;
  }
}

/**
 * Requests a decision on a call and runs it if allowed. Reports an error after the start as a lost response, not as a
 * call that did not run, because the call may have taken effect.
 * @throws the reason of the caller's signal if the client disconnects
 */
export async function runGovernedCall(
  call: UpstreamCall,
  caller: Caller,
  ask: AnswerQuestions,
  tool: Tool | null,
  options: DecisionOptions,
): Promise<Reply> {
  const decision = await options.gate.decide(toToolCall(call, caller, options), caller, {
    recheck: call.recheck,
    server: call.upstream,
  });
  if (!decision.mayRun) return refusalReply(decision.refusal, tool);
  const { target, meta } = call.upstream.config;
  let credentialHeaders: Record<string, string> | undefined;
  if ("url" in target && target.credentialHeaders !== null) {
    try {
      credentialHeaders = fillCredentialHeaders(target.credentialHeaders, decision.secret);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      decision.report(false, `the call did not run: ${reason}`);
      return refusalReply(
        proxyRefusal(`The call did not run: ${reason}. An operator has to fix this.`, "CREDENTIAL"),
        tool,
      );
    }
  }
  const { inspect } = decision;
  // Progress can contain what the tool returns, so pass on only its numbers.
  const listener: Caller = inspect === null ? caller : withoutMessages(caller);
  let reply: Reply;
  try {
    const changed = decision.editedParams === null ? {} : call.withArguments?.(decision.editedParams);
    if (changed === undefined) throw new NotSentError("the changed arguments cannot be sent");
    reply = await forwardCall({ ...call, ...changed }, listener, ask, meta, credentialHeaders);
  } catch (error) {
    // The error can contain what the server wrote, which no rule has inspected.
    const reason =
      inspect !== null ? "the server did not complete it" : error instanceof Error ? error.message : String(error);
    const isSent = !(error instanceof NotSentError);
    // If the server has disconnected, the client's connection may end, too, but that is not why the answer was lost.
    if (error instanceof RequestCancelledError || (caller.signal.aborted && call.upstream.closed === null)) {
      decision.report(
        false,
        `cancelled by the client ${isSent ? "while it ran; it may have taken effect" : "before it ran"}`,
      );
      throw error;
    }
    if (!isSent) {
      decision.report(false, `the call did not run: ${reason}`);
      return refusalReply(
        serverDisconnectedRefusal(call.upstream.config.name, `did not get the call: ${reason}`),
        tool,
      );
    }
    decision.report(false, `the answer was lost: ${reason}`);
    return lostAnswerReply(reason, decision.id, tool !== null);
  }
  const delivered = inspect === null ? reply : await inspectReply(reply, inspect, decision.id, tool);
  const errorText = readErrorMessage(reply) ?? toolErrorText(reply);
  // The agent can read the report, so it has only what the client gets.
  const shown = delivered === reply ? errorText : (readErrorMessage(delivered) ?? toolErrorText(delivered));
  decision.report(errorText === null, errorText === null ? undefined : (shown ?? "the error was redacted"));
  return delivered;
}

function withoutMessages(caller: Caller): Caller {
  return Object.create(caller, {
    sendProgress: {
      value: ({ progress, total }: JsonObject) => {
        if (typeof progress === "number")
          caller.sendProgress({ progress, ...(typeof total === "number" ? { total } : {}) });
      },
    },
  }) as Caller;
}

export function refusalReply(refusal: ToolRefusal, tool: Tool | null): Reply {
  if (tool !== null) return { result: refusalToolResult(refusal, tool.item["outputSchema"] !== undefined) };
  return errorReply(REFUSED_CODE, markText(refusal.text), { mark: MARK, ...refusal.facts });
}

function lostAnswerReply(reason: string, id: string, isTool: boolean): Reply {
  const text = markText(
    `The call was allowed and sent, but its answer was lost: ${reason}. It may have taken effect (action ${id}). ` +
      `Check before you call again, or ask the user.`,
  );
  return isTool
    ? {
        result: {
          content: [{ type: "text", text }],
          isError: true,
          _meta: { "assent/lost": { mark: MARK, action_id: id } },
        },
      }
    : errorReply(REFUSED_CODE, text, { mark: MARK, action_id: id });
}

/** Returns the error text of a failed tool result; null for a successful one. */
function toolErrorText(reply: Reply): string | null {
  if (!("result" in reply) || reply.result["isError"] !== true) return null;
  const { content } = reply.result;
  const first = Array.isArray(content) ? (content[0] as JsonObject | undefined) : undefined;
  return typeof first?.["text"] === "string" ? first["text"] : "the tool reported an error";
}
