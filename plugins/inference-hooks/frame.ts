/** Reads the tool calls or the prompt in a frame of the vendor. Refuses a frame unless all of it can be read. */
import { createHash } from "node:crypto";
import {
  canonicalText,
  clipText,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  UnreadableRequest,
} from "../../src/core.ts";
import type { GateRequest } from "../actions/api.ts";

/** Maximum number of calls in one frame. Each is a separate action. */
const MAX_CALLS = 20;
/** Blocks of a message that call no tool. */
const OTHER_BLOCKS: ReadonlySet<JsonValue | undefined> = new Set(["text", "attachment", "tool_result"]);
/** Maximum length of a prompt's text in an action. The digest covers longer prompts. */
const MAX_PROMPT_TEXT = 20_000;
/** Maximum length of ids and addresses. */
const MAX_NAME = 256;

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
  const { agentId, caller } = readCaller(frame);
  const requests = calls.map((call) => ({
    agent_id: agentId,
    tool,
    ...readCall(call, caller),
    meta: { ...readOrigin(frame), tool_use_id: clippedText(call["id"]) },
  }));
  // Two equal calls would become one action, which can start only once.
  if (
    new Set(requests.map(({ operation, params, context }) => canonicalText({ operation, params, context }))).size <
    requests.length
  )
    throw new UnreadableRequest("two of the calls are the same");
  return requests;
}

/**
 * Returns the newest message of the user in a frame of type `prompt` as an action. Its tool is `<tool>.prompt`, so that
 * no tool of the vendor can have the same tool and operation. Throws UnreadableRequest.
 */
export function readPrompt(frame: JsonObject, tool: string): GateRequest {
  const { messages } = frame;
  const message = Array.isArray(messages)
    ? messages.findLast((each) => !isJsonObject(each) || each["role"] === "user")
    : undefined;
  if (!isJsonObject(message) || !Array.isArray(message["content"]) || message["content"].length === 0)
    throw new UnreadableRequest("the frame has no message of the user with content");
  const { content } = message;
  const types = new Set<string>();
  const texts: string[] = [];
  for (const block of content) {
    const type = isJsonObject(block) ? block["type"] : undefined;
    if (!isJsonObject(block) || typeof type !== "string" || !OTHER_BLOCKS.has(type))
      throw new UnreadableRequest("the prompt has a block of an unknown type");
    types.add(type);
    if (type !== "text") continue;
    if (typeof block["text"] !== "string") throw new UnreadableRequest("the prompt has a block without text");
    texts.push(block["text"]);
  }
  const { agentId, caller } = readCaller(frame);
  const text = texts.join("\n");
  return {
    agent_id: agentId,
    tool: `${tool}.prompt`,
    operation: "prompt",
    params: {
      sha256: createHash("sha256").update(canonicalText(content)).digest("hex"),
      text: clipText(text, MAX_PROMPT_TEXT),
      truncated: text.length > MAX_PROMPT_TEXT,
      types: [...types].sort(),
    },
    context: { caller },
    meta: readOrigin(frame),
  };
}

function readCall(
  { tool_name: name, input, tool_info: info }: JsonObject,
  caller: JsonObject,
): Pick<GateRequest, "operation" | "params"> & { context: JsonObject } {
  if (typeof name !== "string" || name === "" || !isJsonObject(input))
    throw new UnreadableRequest("one of the calls has no name, or no arguments");
  if (info !== undefined && !isJsonObject(info))
    throw new UnreadableRequest("the tool_info of one of the calls is not an object");
  return {
    operation: name,
    params: input,
    context: { caller, ...(info === undefined ? {} : { tool_info: info }) },
  };
}

/** Returns the caller's identity, which is part of the action: an approval for one person is not valid for another. */
function readCaller({ tenant_id: tenant, actor }: JsonObject) {
  if (!isJsonObject(actor)) throw new UnreadableRequest("the frame names no actor");
  const id = readName(actor["id"], "id of the actor");
  const email = readName(actor["email_address"], "e-mail address of the actor");
  const name = id ?? email;
  if (name === null) throw new UnreadableRequest("the actor has neither an id nor an e-mail address");
  return {
    // Use a prefix, so that ids of the vendor's users cannot equal names of other agents.
    agentId: `claude:${name}`,
    caller: { tenant_id: readName(tenant, "tenant_id"), actor_id: id, actor_email: email },
  };
}

/** Returns a name that identifies someone and so must not be truncated; null if it is absent or empty. */
function readName(value: JsonValue | undefined, label: string): string | null {
  if (value === undefined || value === null || value === "") return null;
  if (typeof value === "string" && value.length <= MAX_NAME) return value;
  throw new UnreadableRequest(`the ${label} is not a string of at most ${MAX_NAME} characters`);
}

/** Returns what the record says about the origin of a frame. */
function readOrigin({ session_id: session, source }: JsonObject) {
  return {
    via: "inference-hooks",
    session: clippedText(session),
    application: isJsonObject(source) ? clippedText(source["application"]) : null,
  };
}

const clippedText = (value: JsonValue | undefined): string | null =>
  typeof value === "string" ? clipText(value, MAX_NAME) : null;
