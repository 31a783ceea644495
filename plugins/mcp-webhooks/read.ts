/** The call in a message of an MCP gateway: what one server could read in another way than the next is refused. */
import { isJsonObject, type JsonObject, type JsonValue, UnreadableRequest } from "../../src/core.ts";

/** Of MCP, what runs no tool. What is not here and is not `tools/call` is refused. */
const OPEN =
  /^(?:initialize|ping|server\/discover|logging\/setLevel|completion\/complete|subscriptions\/listen|prompts\/get|(?:tools|prompts|resources|resources\/templates|roots)\/list|resources\/(?:read|subscribe|unsubscribe)|tasks\/(?:get|list|result|cancel|update)|notifications\/[a-z_/]{1,100})$/;

export interface ToolCall {
  name: string;
  args: JsonObject;
  /** Whatever else of the parameters reaches the tool: answers to what it asked in an earlier round. */
  more: JsonObject;
}

/** The parameters of a request that Docker's gateway writes out: `{"Session": …, "Params": {…}, "Extra": …}`. */
export function callOfDocker(body: JsonObject): ToolCall {
  const { params } = membersOf(body, ["params"], "fold");
  return callOf(params);
}

/** A JSON-RPC message. Null: it calls no tool. */
export function callOfMessage(message: JsonValue | undefined): ToolCall | null {
  if (!isJsonObject(message)) throw new UnreadableRequest("it holds no message of MCP");
  const { method, params } = membersOf(message, ["jsonrpc", "id", "method", "params"]);
  if (typeof method !== "string") throw new UnreadableRequest("it has no method");
  if (method === "tools/call") return callOf(params);
  if (!OPEN.test(method)) throw new UnreadableRequest(`nothing is known of the method ${method}`);
  return null;
}

function callOf(params: JsonValue | undefined): ToolCall {
  if (!isJsonObject(params)) throw new UnreadableRequest("the call has no parameters");
  const { name, arguments: args = {} } = membersOf(params, ["name", "arguments"]);
  if (typeof name !== "string" || !isJsonObject(args))
    throw new UnreadableRequest("the call has a name, which is a text, and arguments, which are an object");
  const apart = ["name", "arguments", "_meta", "task"];
  return { name, args, more: Object.fromEntries(Object.entries(params).filter(([key]) => !apart.includes(key))) };
}

/**
 * Those members by their names. Go reads `Method` as `method`, and the last of both counts: only one spelling is taken,
 * the exact one unless it was Go that wrote it.
 */
function membersOf(object: JsonObject, names: readonly string[], mode: "exact" | "fold" = "exact"): JsonObject {
  const members: [string, JsonValue][] = [];
  for (const [key, value] of Object.entries(object)) {
    // Of the letters beyond ASCII, some fold into it.
    const folded = key.toUpperCase().toLowerCase();
    if (!names.includes(folded)) continue;
    if ((mode === "exact" && key !== folded) || members.some(([name]) => name === folded))
      throw new UnreadableRequest(`"${key}" can be read as "${folded}", and can be passed over`);
    members.push([folded, value]);
  }
  return Object.fromEntries(members);
}
