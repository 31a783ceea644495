/** The tool calls in LiteLLM's question: all of them, whole, or it is refused. */
import {
  canonicalText,
  type GateRequest,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  readJsonObject,
  UnreadableRequest,
  utf8,
} from "../../src/core.ts";

/** More than any model calls at once; each is an action of its own. */
const MOST_CALLS = 20;
/** Of LiteLLM's own key, by which it knows its caller. Whose call it is belongs to what is asked. */
const CALLER = ["hash", "alias", "user_id", "end_user_id", "team_id", "org_id"];

/** Throws Unreadable. */
export function callsIn(body: JsonObject, tool: string): GateRequest[] {
  // Of a request it is told what was called before, and of a call of MCP the texts without their names.
  if (body["input_type"] !== "response")
    throw new UnreadableRequest("it is no answer of a model: set mode to post_call");
  if (!("tool_calls" in body)) throw new UnreadableRequest("it does not say which tools are called");
  const calls = body["tool_calls"] ?? [];
  if (!Array.isArray(calls)) throw new UnreadableRequest("the tool calls are no list");
  if (calls.length > MOST_CALLS) throw new UnreadableRequest(`more than ${MOST_CALLS} tools are called at once`);
  if (calls.length === 0) return [];
  const caller = callerOf(body["request_data"]);
  const alias = caller["key_alias"];
  const requests = calls.map((call) => ({
    // Who names LiteLLM's keys names no agents of ours.
    agent_id: typeof alias === "string" && alias !== "" ? `litellm:${alias}` : "litellm",
    tool,
    ...callOf(call),
    context: { caller },
    meta: { via: "litellm" },
  }));
  // They would be one action, which starts once, and two calls.
  if (new Set(requests.map(({ operation, params }) => canonicalText({ operation, params }))).size < requests.length)
    throw new UnreadableRequest("two of the calls are the same");
  return requests;
}

function callOf(call: JsonValue): { operation: string; params: JsonObject } {
  if (!isJsonObject(call) || call["type"] !== "function" || !isJsonObject(call["function"]))
    throw new UnreadableRequest("one of the calls is none of a function");
  const { name, arguments: args } = call["function"];
  if (typeof name !== "string" || name === "" || typeof args !== "string")
    throw new UnreadableRequest("one of the calls has no name, or no arguments");
  // Of a function without parameters some providers give nothing.
  return { operation: name, params: args.trim() === "" ? {} : readJsonObject(utf8(args)) };
}

/** An approval of one is none of another's: without the key it would be everybody's. */
function callerOf(given: JsonValue | undefined): JsonObject {
  const caller: JsonObject = {};
  for (const name of CALLER) {
    const value = isJsonObject(given) ? (given[`user_api_key_${name}`] ?? null) : null;
    if (value !== null && typeof value !== "string")
      throw new UnreadableRequest("it does not say in words whose call it is");
    if (value !== null) caller[`key_${name}`] = value;
  }
  if ((caller["key_hash"] ?? "") === "")
    throw new UnreadableRequest("it does not say with which of LiteLLM's keys it was asked");
  return caller;
}
