/** Reads the call in a message of an MCP gateway. Rejects messages that servers could interpret differently. */
import { isJsonObject, type JsonObject, type JsonValue, UnreadableRequest } from "../../src/core.ts";

/** MCP methods that do not run tools. All other methods except `tools/call` are rejected. */
const UNDECIDED_METHODS =
  /^(?:initialize|ping|server\/discover|logging\/setLevel|completion\/complete|subscriptions\/listen|prompts\/get|(?:tools|prompts|resources|resources\/templates|roots)\/list|resources\/(?:read|subscribe|unsubscribe)|tasks\/(?:get|list|result|cancel|update)|notifications\/[a-z_/]{1,100})$/;

export interface ToolCall {
  name: string;
  args: JsonObject;
  /**
   * Other members of `params`, except `_meta` and `task`. They can affect the tool: `inputResponses`, for example, has
   * the client's answers to requests of the tool.
   */
  more: JsonObject;
}

/** Reads the call in the format of Docker's gateway: `{"Session": …, "Params": {…}, "Extra": …}`. */
export function readDockerCall(body: JsonObject): ToolCall {
  const { params } = membersOf(body, ["params"], "fold");
  return callOf(params);
}

/** Reads the call in a JSON-RPC message. Returns null if it does not call a tool. */
export function readJsonRpcCall(message: JsonValue | undefined): ToolCall | null {
  if (!isJsonObject(message)) throw new UnreadableRequest("it contains no MCP message");
  const { method, params } = membersOf(message, ["jsonrpc", "id", "method", "params"]);
  if (typeof method !== "string") throw new UnreadableRequest("it has no method");
  if (method === "tools/call") return callOf(params);
  if (!UNDECIDED_METHODS.test(method)) throw new UnreadableRequest(`the method ${method} is unknown`);
  return null;
}

function callOf(params: JsonValue | undefined): ToolCall {
  if (!isJsonObject(params)) throw new UnreadableRequest("the call has no parameters");
  const { name, arguments: args = {} } = membersOf(params, ["name", "arguments"]);
  if (typeof name !== "string" || !isJsonObject(args))
    throw new UnreadableRequest("the call has a name, which is a text, and arguments, which are an object");
  const standardMembers = ["name", "arguments", "_meta", "task"];
  return {
    name,
    args,
    more: Object.fromEntries(Object.entries(params).filter(([key]) => !standardMembers.includes(key))),
  };
}

/**
 * Returns the named members. Go's encoding/json matches member names case-insensitively and keeps the last duplicate,
 * so this function rejects a second spelling of a name. `exact` (for other senders) requires the exact spelling; `fold`
 * (for messages written by Go) accepts any case.
 */
function membersOf(object: JsonObject, names: readonly string[], mode: "exact" | "fold" = "exact"): JsonObject {
  const members: [string, JsonValue][] = [];
  for (const [key, value] of Object.entries(object)) {
    // Unicode case folding turns some non-ASCII letters into ASCII letters.
    const folded = key.toUpperCase().toLowerCase();
    if (!names.includes(folded)) continue;
    if ((mode === "exact" && key !== folded) || members.some(([name]) => name === folded))
      throw new UnreadableRequest(`"${key}" can be read as "${folded}" or ignored, depending on the parser`);
    members.push([folded, value]);
  }
  return Object.fromEntries(members);
}
