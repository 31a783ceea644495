/** Finds the tool calls of a session that wait for a confirmation. */
import { isJsonObject, type JsonObject } from "../../src/core.ts";

/** Events of calls that the vendor runs after a confirmation. The application itself runs custom tools. */
const CONFIRMED_TYPES = new Set(["agent.tool_use", "agent.mcp_tool_use"]);

export interface PendingCall {
  /** Id of the event, with which the confirmation refers to it. */
  id: string;
  name: string;
  /** Name of the MCP server; null for a tool of the vendor. */
  server: string | null;
  input: JsonObject;
}

/**
 * Returns the calls that the session waits for; an empty list if it waits for something else.
 * @param eventsBackwards the session's events, newest first
 * @throws Error if an event of a call cannot be read
 */
export async function findPendingCalls(eventsBackwards: AsyncIterable<JsonObject>): Promise<PendingCall[]> {
  let open: Set<string> | null = null;
  const answered = new Set<unknown>();
  const calls: PendingCall[] = [];
  for await (const event of eventsBackwards) {
    const type = typeof event["type"] === "string" ? event["type"] : "";
    if (type === "user.tool_confirmation") answered.add(event["tool_use_id"]);
    if (open === null) {
      // Before the newest change of the session's status, only answers can follow.
      if (type === "session.status_idle") open = readBlockingEvents(event["stop_reason"]);
      else if (type.startsWith("session.status_")) return [];
      continue;
    }
    if (open.size === 0) break;
    const { id } = event;
    if (typeof id !== "string" || !open.delete(id)) continue;
    if (CONFIRMED_TYPES.has(type) && !answered.has(id)) calls.push(readCall(id, event));
  }
  return calls.reverse();
}

function readBlockingEvents(reason: unknown): Set<string> {
  if (!isJsonObject(reason) || reason["type"] !== "requires_action" || !Array.isArray(reason["event_ids"]))
    return new Set();
  return new Set(reason["event_ids"].filter((id) => typeof id === "string"));
}

function readCall(id: string, { name, input, mcp_server_name: server }: JsonObject): PendingCall {
  if (typeof name !== "string" || !isJsonObject(input))
    throw new Error(`the event ${id} has no name of a tool, or no arguments`);
  return { id, name, server: typeof server === "string" ? server : null, input };
}
