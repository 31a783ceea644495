/** Reads the tool calls in a request of LiteLLM. Rejects the request unless all of them are complete. */
import {
  canonicalText,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  readJsonObject,
  UnreadableRequest,
  utf8,
} from "../../src/core.ts";
import type { GateRequest } from "../actions/api.ts";

/** Maximum number of calls in one request. Each is a separate action. */
const MAX_CALLS = 20;
/** Members of LiteLLM's own key that identify the caller. The caller is part of the action. */
const CALLER = ["hash", "alias", "user_id", "end_user_id", "team_id", "org_id"];

/** Returns the action of each call. Throws UnreadableRequest. */
export function readToolCalls(body: JsonObject, tool: string): GateRequest[] {
  // For other input types, LiteLLM sends earlier calls, or the arguments of MCP calls without the names of the tools.
  if (body["input_type"] !== "response")
    throw new UnreadableRequest("it is not a response of a model; set mode to post_call");
  if (!("tool_calls" in body)) throw new UnreadableRequest("it does not contain the tool calls");
  const calls = body["tool_calls"] ?? [];
  if (!Array.isArray(calls)) throw new UnreadableRequest("the tool calls are not a list");
  if (calls.length > MAX_CALLS) throw new UnreadableRequest(`more than ${MAX_CALLS} tools are called at once`);
  if (calls.length === 0) return [];
  const caller = readCaller(body["request_data"]);
  const requests = calls.map((call) => ({
    agent_id: agentOf(caller),
    tool,
    ...callOf(call),
    context: { caller },
    meta: { via: "litellm" },
  }));
  // Two equal calls would become one action, which can start only once.
  if (new Set(requests.map(({ operation, params }) => canonicalText({ operation, params }))).size < requests.length)
    throw new UnreadableRequest("two of the calls are the same");
  return requests;
}

/** Returns the agent of a caller, for a key of Assent that is not bound to an agent. */
export function agentOf({ key_alias: alias }: JsonObject): string {
  // Use a prefix, so that names of LiteLLM keys cannot equal names of other agents.
  return typeof alias === "string" && alias !== "" ? `litellm:${alias}` : "litellm";
}

function callOf(call: JsonValue): { operation: string; params: JsonObject } {
  if (!isJsonObject(call) || call["type"] !== "function" || !isJsonObject(call["function"]))
    throw new UnreadableRequest("one of the calls is not a function call");
  const { name, arguments: args } = call["function"];
  if (typeof name !== "string" || name === "" || typeof args !== "string")
    throw new UnreadableRequest("one of the calls has no name, or no arguments");
  // Some providers send an empty string for a function without parameters.
  return { operation: name, params: args.trim() === "" ? {} : readJsonObject(utf8(args)) };
}

/**
 * Returns the caller, which is part of the action, so that an approval for one caller is not valid for another. Throws
 * if the request does not contain a key.
 */
export function readCaller(keyData: JsonValue | undefined): JsonObject {
  const caller: JsonObject = {};
  for (const name of CALLER) {
    const value = isJsonObject(keyData) ? (keyData[`user_api_key_${name}`] ?? null) : null;
    if (value !== null && typeof value !== "string") throw new UnreadableRequest("the caller's names are not strings");
    if (value !== null) caller[`key_${name}`] = value;
  }
  if ((caller["key_hash"] ?? "") === "") throw new UnreadableRequest("it does not identify the caller's LiteLLM key");
  return caller;
}
