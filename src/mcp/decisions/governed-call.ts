/** One governed request: decided, begun, sent, answered, reported. */
import { clipText } from "../../domain/text.ts";
import { readCallMeta } from "./call-meta.ts";
import type { Caller } from "../clients/caller.ts";
import type { CallGate, Recheck, ToolCall } from "./decide-call.ts";
import {
  errorReply,
  isObject,
  readMeta,
  withMeta,
  type RequestId,
  type JsonObject,
  type Reply,
} from "../transport/message.ts";
import { errorMessage } from "../transport/peer.ts";
import { refusalToolResult, type Refusal } from "./refusal.ts";
import type { Tool } from "../tools/tool-catalog.ts";
import type { AskClient, Upstream } from "../upstreams/upstream.ts";

/** Of a refusal where there is no result that could say so. Outside of what MCP reserves. */
const REFUSED_CODE = -32010;
/** How long a server may take to hear that its task is cancelled. Milliseconds. */
const CANCEL_TIMEOUT_MS = 5000;
/** Of `_meta` that goes into the record. Bytes of JSON. */
const MAX_META_BYTES = 2048;

export interface UpstreamCall {
  upstream: Upstream;
  method: string;
  /** As it is sent. */
  params: JsonObject;
  id: RequestId;
  operation: string;
  /** As it is decided. */
  decidedParams: JsonObject;
  /** What its server wants in headers besides, where it is called over HTTP. */
  headers?: Readonly<Record<string, string>>;
  context: JsonObject;
  /** Asked last, before it begins. */
  recheck?: Recheck;
}

export interface DecisionOptions {
  gate: CallGate;
  session: string;
  /** Whether tools that policies always deny are left out of lists. */
  hideDenied: boolean;
}

export function toToolCall(
  { upstream, operation, decidedParams: subject, context, id, params }: UpstreamCall,
  { info }: Caller,
  options: DecisionOptions,
): ToolCall {
  const { decided, recorded: remarks } = readCallMeta(readMeta(params), upstream.config.meta);
  const { traceparent, ...rest } = remarks;
  return {
    tool: upstream.config.tool,
    operation,
    params: subject,
    context:
      Object.keys(decided).length === 0 ? context : { ...context, mcp: { ...mcpContext(context), meta: decided } },
    meta: {
      ...(typeof traceparent === "string" ? { traceparent: clipText(traceparent, 100) } : {}),
      mcp: {
        client: { name: clip(info["name"]), version: clip(info["version"]) },
        session: options.session,
        request_id: typeof id === "string" ? clip(id) : id,
        ...recordedMeta(rest),
      },
    },
  };
}

const mcpContext = ({ mcp }: JsonObject): JsonObject => (isObject(mcp) ? mcp : {});

const clip = (value: unknown): string | null => (typeof value === "string" ? clipText(value, 100) : null);

/** What else the client says about the call, such as the id that its model knows it by. */
function recordedMeta(rest: JsonObject): JsonObject {
  const size = Buffer.byteLength(JSON.stringify(rest));
  return size <= 2 || size > MAX_META_BYTES ? {} : { meta: rest };
}

/**
 * Sends what was decided, or what needs no decision.
 * @param keys patterns of the `_meta` that goes along
 * @throws RequestLost
 */
export async function forwardCall(
  { upstream, method, params, headers }: UpstreamCall,
  caller: Caller,
  ask: AskClient,
  keys: readonly string[],
): Promise<Reply> {
  const options = {
    signal: caller.signal,
    capabilities: caller.capabilities,
    ask,
    ...(caller.wantsProgress ? { onprogress: (of: JsonObject) => caller.sendProgress(of) } : {}),
  };
  const { sent } = readCallMeta(readMeta(params), keys);
  const reply = await upstream.request(method, withMeta(params, sent), { ...options, headers });
  if (params["task"] === undefined || "error" in reply) return reply;
  const { task } = reply.result;
  if (!isObject(task) || typeof task["taskId"] !== "string") return reply;
  // A server that makes a task of it is waited for: the client has a task of the proxy's.
  const { taskId } = task;
  try {
    return await upstream.request("tasks/result", { taskId }, options);
  } catch (error) {
    const late = AbortSignal.timeout(CANCEL_TIMEOUT_MS);
    void upstream.request("tasks/cancel", { taskId }, { ask, signal: late }).catch(() => {});
    throw error;
  }
}

/** What goes wrong after the decision is an answer that was lost, and never a call that was not made. @throws the reason of the caller's signal, when the client is gone. */
export async function runGovernedCall(
  call: UpstreamCall,
  caller: Caller,
  ask: AskClient,
  tool: Tool | null,
  options: DecisionOptions,
): Promise<Reply> {
  const verdict = await options.gate.decide(toToolCall(call, caller, options), caller, call.recheck);
  if (!verdict.mayRun) return refusalReply(verdict.refusal, tool);
  let reply: Reply;
  try {
    reply = await forwardCall(call, caller, ask, call.upstream.config.meta);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    if (caller.signal.aborted) {
      verdict.report(false, "cancelled by the client while it ran; whether it had an effect is not known");
      throw error;
    }
    verdict.report(false, `the answer was lost: ${why}`);
    return lostAnswerReply(why, verdict.id, tool !== null);
  }
  const trouble = errorMessage(reply) ?? toolErrorText(reply);
  verdict.report(trouble === null, trouble ?? undefined);
  return reply;
}

export function refusalReply(refusal: Refusal, tool: Tool | null): Reply {
  if (tool !== null) return { result: refusalToolResult(refusal, tool.item["outputSchema"] !== undefined) };
  return errorReply(REFUSED_CODE, refusal.text, { ...refusal.facts });
}

function lostAnswerReply(why: string, id: string, isTool: boolean): Reply {
  const text =
    `The call was allowed and sent, and its answer was lost: ${why}. Whether it had an effect is not known (action ${id}). ` +
    `Find out before you call again, or ask the user.`;
  return isTool
    ? { result: { content: [{ type: "text", text }], isError: true, _meta: { "assent/lost": { action_id: id } } } }
    : errorReply(REFUSED_CODE, text, { action_id: id });
}

/** What a tool says that went wrong. */
function toolErrorText(reply: Reply): string | null {
  if (!("result" in reply) || reply.result["isError"] !== true) return null;
  const { content } = reply.result;
  const first = Array.isArray(content) ? (content[0] as JsonObject | undefined) : undefined;
  return typeof first?.["text"] === "string" ? first["text"] : "the tool reported an error";
}
