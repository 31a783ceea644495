/** Reads the tool calls in a frame of the vendor. Refuses a frame unless every call in it can be read. */
import {
  canonicalText,
  type GateRequest,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  UnreadableRequest,
} from "../../src/core.ts";

/** Maximum number of calls in one frame. Each is a separate action. */
const MAX_CALLS = 20;
/** Blocks of a message that call no tool. */
const OTHER_BLOCKS: ReadonlySet<JsonValue | undefined> = new Set(["text", "attachment", "tool_result"]);

export interface FrameOptions {
  /** `tool` of the submitted actions. */
  tool: string;
  /** Whether blocks of unknown types pass. */
  passesUnknown: boolean;
}

/** Returns the action of each call in a frame of type `tool_call`. Throws UnreadableRequest. */
export function readToolCalls(frame: JsonObject, { tool, passesUnknown }: FrameOptions): GateRequest[] {
  const { messages } = frame;
  // The vendor can add earlier messages in front of the new one.
  const message = Array.isArray(messages) ? messages.at(-1) : undefined;
  if (!isJsonObject(message) || !Array.isArray(message["content"]))
    throw new UnreadableRequest("the frame has no message with content");
  const blocks = message["content"];
  const calls: JsonObject[] = [];
  for (const block of blocks) {
    if (isJsonObject(block) && block["type"] === "tool_use") calls.push(block);
    else if (!passesUnknown && !(isJsonObject(block) && OTHER_BLOCKS.has(block["type"])))
      throw new UnreadableRequest("the message has a block of an unknown type, which could be a call");
  }
  if (calls.length === 0) throw new UnreadableRequest("the frame has no tool call");
  if (calls.length > MAX_CALLS) throw new UnreadableRequest(`the frame has more than ${MAX_CALLS} tool calls`);
  const caller = readCaller(frame);
  const requests = calls.map((call) => ({
    // Use a prefix, so that ids of the vendor's users cannot equal names of other agents.
    agent_id: `claude:${caller.actor_id ?? caller.actor_email ?? "unknown"}`,
    tool,
    ...readCall(call, caller),
    meta: {
      via: "inference-hooks",
      session: textOf(frame["session_id"]),
      application: isJsonObject(frame["source"]) ? textOf(frame["source"]["application"]) : null,
      tool_use_id: textOf(call["id"]),
    },
  }));
  // Two equal calls would become one action, which can start only once.
  if (
    new Set(requests.map(({ operation, params, context }) => canonicalText({ operation, params, context }))).size <
    requests.length
  )
    throw new UnreadableRequest("two of the calls are the same");
  return requests;
}

function readCall(
  { tool_name: name, input, tool_info: info }: JsonObject,
  caller: JsonObject,
): Pick<GateRequest, "operation" | "params"> & { context: JsonObject } {
  if (typeof name !== "string" || name === "" || !isJsonObject(input))
    throw new UnreadableRequest("one of the calls has no name, or no arguments");
  return {
    operation: name,
    params: input,
    context: { caller, ...(isJsonObject(info) ? { tool_info: info } : {}) },
  };
}

/** Returns who caused the call, which is part of the action: an approval for one person is not valid for another. */
function readCaller({ tenant_id: tenant, actor }: JsonObject) {
  if (!isJsonObject(actor)) throw new UnreadableRequest("the frame names no actor");
  return { tenant_id: textOf(tenant), actor_id: textOf(actor["id"]), actor_email: textOf(actor["email_address"]) };
}

const textOf = (value: JsonValue | undefined): string | null =>
  typeof value === "string" ? value.slice(0, 256) : null;
