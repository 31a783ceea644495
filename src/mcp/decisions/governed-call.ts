/** One governed request: decided, begun, sent, answered, reported. */
import { clipText } from "../../domain/text.ts";
import { readCallMeta } from "./call-meta.ts";
import type { Caller } from "../clients/caller.ts";
import type { Gate, Stands, Wish } from "./decide-call.ts";
import { failure, isObject, metaOf, withMeta, type Id, type JsonObject, type Reply } from "../transport/message.ts";
import { messageOfFailure } from "../transport/peer.ts";
import { asToolResult, type Refusal } from "./refusal.ts";
import type { Tool } from "../tools/tool-catalog.ts";
import type { Ask, Upstream } from "../upstreams/upstream.ts";

/** Of a refusal where there is no result that could say so. Outside of what MCP reserves. */
const REFUSED = -32010;
/** How long a server may take to hear that its task is cancelled. Milliseconds. */
const FAREWELL = 5000;
/** Of `_meta` that goes into the record. Bytes of JSON. */
const LARGEST_META = 2048;

export interface Call {
  upstream: Upstream;
  method: string;
  /** As it is sent. */
  params: JsonObject;
  id: Id;
  operation: string;
  /** As it is decided. */
  subject: JsonObject;
  /** What its server wants in headers besides, where it is called over HTTP. */
  headers?: Readonly<Record<string, string>>;
  context: JsonObject;
  /** Asked last, before it begins. */
  stands?: Stands;
}

export interface CallOptions {
  gate: Gate;
  session: string;
  /** Whether tools that policies always deny are left out of lists. */
  hideDenied: boolean;
}

export function wishOf(
  { upstream, operation, subject, context, id, params }: Call,
  { info }: Caller,
  options: CallOptions,
): Wish {
  const { decided, remarks } = readCallMeta(metaOf(params), upstream.config.meta);
  const { traceparent, ...rest } = remarks;
  return {
    tool: upstream.config.tool,
    operation,
    params: subject,
    context: Object.keys(decided).length === 0 ? context : { ...context, mcp: { ...ofMcp(context), meta: decided } },
    meta: {
      ...(typeof traceparent === "string" ? { traceparent: clipText(traceparent, 100) } : {}),
      mcp: {
        client: { name: clip(info["name"]), version: clip(info["version"]) },
        session: options.session,
        request_id: typeof id === "string" ? clip(id) : id,
        ...tellable(rest),
      },
    },
  };
}

const ofMcp = ({ mcp }: JsonObject): JsonObject => (isObject(mcp) ? mcp : {});

const clip = (value: unknown): string | null => (typeof value === "string" ? clipText(value, 100) : null);

/** What else the client says about the call, such as the id that its model knows it by. */
function tellable(rest: JsonObject): JsonObject {
  const size = Buffer.byteLength(JSON.stringify(rest));
  return size <= 2 || size > LARGEST_META ? {} : { meta: rest };
}

/**
 * Sends what was decided, or what needs no decision.
 * @param keys patterns of the `_meta` that goes along
 * @throws RequestLost
 */
export async function forward(
  { upstream, method, params, headers }: Call,
  caller: Caller,
  ask: Ask,
  keys: readonly string[],
): Promise<Reply> {
  const options = {
    signal: caller.signal,
    capabilities: caller.capabilities,
    ask,
    ...(caller.wantsProgress ? { onprogress: (of: JsonObject) => caller.progress(of) } : {}),
  };
  const { sent } = readCallMeta(metaOf(params), keys);
  const reply = await upstream.request(method, withMeta(params, sent), { ...options, headers });
  if (params["task"] === undefined || "error" in reply) return reply;
  const { task } = reply.result;
  if (!isObject(task) || typeof task["taskId"] !== "string") return reply;
  // A server that makes a task of it is waited for: the client has a task of the proxy's.
  const { taskId } = task;
  try {
    return await upstream.request("tasks/result", { taskId }, options);
  } catch (error) {
    const late = AbortSignal.timeout(FAREWELL);
    void upstream.request("tasks/cancel", { taskId }, { ask, signal: late }).catch(() => {});
    throw error;
  }
}

/** What goes wrong after the decision is an answer that was lost, and never a call that was not made. @throws the reason of the caller's signal, when the client is gone. */
export async function govern(
  call: Call,
  caller: Caller,
  ask: Ask,
  tool: Tool | null,
  options: CallOptions,
): Promise<Reply> {
  const verdict = await options.gate.decide(wishOf(call, caller, options), caller, call.stands);
  if (!verdict.runs) return refuse(verdict.refusal, tool);
  let reply: Reply;
  try {
    reply = await forward(call, caller, ask, call.upstream.config.meta);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    if (caller.signal.aborted) {
      verdict.report(false, "cancelled by the client while it ran; whether it had an effect is not known");
      throw error;
    }
    verdict.report(false, `the answer was lost: ${why}`);
    return lost(why, verdict.id, tool !== null);
  }
  const trouble = messageOfFailure(reply) ?? errorIn(reply);
  verdict.report(trouble === null, trouble ?? undefined);
  return reply;
}

export function refuse(refusal: Refusal, tool: Tool | null): Reply {
  if (tool !== null) return { result: asToolResult(refusal, tool.item["outputSchema"] !== undefined) };
  return failure(REFUSED, refusal.text, { ...refusal.facts });
}

function lost(why: string, id: string, isTool: boolean): Reply {
  const text =
    `The call was allowed and sent, and its answer was lost: ${why}. Whether it had an effect is not known (action ${id}). ` +
    `Find out before you call again, or ask the user.`;
  return isTool
    ? { result: { content: [{ type: "text", text }], isError: true, _meta: { "assent/lost": { action_id: id } } } }
    : failure(REFUSED, text, { action_id: id });
}

/** What a tool says that went wrong. */
function errorIn(reply: Reply): string | null {
  if (!("result" in reply) || reply.result["isError"] !== true) return null;
  const { content } = reply.result;
  const first = Array.isArray(content) ? (content[0] as JsonObject | undefined) : undefined;
  return typeof first?.["text"] === "string" ? first["text"] : "the tool reported an error";
}
