/** Finds the tool calls of a session that wait for a confirmation. */
import { isJsonObject, type JsonObject } from "../../src/core.ts";

const MCP_CALL = "agent.mcp_tool_use";
/** Events of calls that the vendor runs after a confirmation. The application itself runs custom tools. */
const CONFIRMED_TYPES = new Set(["agent.tool_use", MCP_CALL]);

export interface PendingCall {
  /** Id of the event, with which the confirmation refers to it. */
  id: string;
  name: string;
  /** Name of the MCP server; null for a tool of the vendor. */
  server: string | null;
  input: JsonObject;
  /** Thread of the sub-agent that made the call; null for the session's own agent. */
  thread: string | null;
}

/**
 * Returns the events of the calls that the session waits for; an empty list if it waits for something else.
 * @param eventsBackwards the session's events, newest first
 */
export async function findPendingCalls(eventsBackwards: AsyncIterable<JsonObject>): Promise<JsonObject[]> {
  let open: Set<string> | null = null;
  const answered = new Set<unknown>();
  const calls: JsonObject[] = [];
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
    if (CONFIRMED_TYPES.has(type) && !answered.has(id)) calls.push(event);
  }
  return calls.reverse();
}

function readBlockingEvents(reason: unknown): Set<string> {
  if (!isJsonObject(reason) || reason["type"] !== "requires_action" || !Array.isArray(reason["event_ids"]))
    return new Set();
  return new Set(reason["event_ids"].filter((id) => typeof id === "string"));
}

/** Reads a call from its event. Throws Error if another reader could take the event for a different call. */
export function readCall(event: JsonObject): PendingCall {
  const { type, id, name, input, mcp_server_name: server = null, session_thread_id: thread } = event;
  if (typeof id !== "string" || typeof name !== "string" || name === "" || !isJsonObject(input))
    throw new Error(`the event ${JSON.stringify(id)} has no name of a tool, or no arguments`);
  const isMcp = type === MCP_CALL;
  if (isMcp ? typeof server !== "string" || server === "" : server !== null)
    throw new Error(`the event ${id} ${isMcp ? "does not name its MCP server" : "names an MCP server"}`);
  return {
    id,
    name,
    server: server as string | null,
    input,
    thread: typeof thread === "string" && thread !== "" ? thread : null,
  };
}
