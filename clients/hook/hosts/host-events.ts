/** Parses the events of all hosts. Throws PayloadError for an unknown format. */
import type { HookEnvironment, HookEvent } from "../hook-event.ts";
import {
  INPUT_MEMBERS,
  isObject,
  PayloadError,
  readArguments,
  firstNonEmptyString,
  type JsonObject,
} from "../payload.ts";
import { eventKind, eventName, type EventKind, type Host } from "./answers.ts";

export function readEvent(host: Host, payload: JsonObject, environment: HookEnvironment): HookEvent {
  const kind = knownEventKind(host, payload);
  const tool = toolName(host, payload);
  const isPending = kind === "before" || kind === "prompt";
  if (isPending && tool === undefined) throw new PayloadError("the call has no tool name");
  const roots = payload["workspace_roots"];
  const root = Array.isArray(roots) && typeof roots[0] === "string" ? roots[0] : null;
  // Codex reports the folder of the call, which its model chooses. Codex starts its hooks in the session's folder.
  const workspace = environment.project ?? root ?? (host === "codex" ? environment.cwd : null);
  return {
    host,
    kind,
    session: firstNonEmptyString(payload, "session_id", "sessionId", "conversation_id") ?? null,
    callId: firstNonEmptyString(payload, "tool_use_id", "toolUseId", "toolCallId", "tool_call_id", "callID") ?? null,
    tool: tool ?? "",
    input: isPending ? toolInput(payload) : {},
    cwd: firstNonEmptyString(payload, "cwd") ?? root ?? environment.cwd,
    workspace,
    success: wasSuccessful(payload),
    isPlanning: payload["permission_mode"] === "plan",
    ...readSubAgent(payload),
    ...(kind === "after" ? readUsage(payload, tool) : {}),
    ...(kind === "refused" ? { refusal: firstNonEmptyString(payload, "reason") ?? "it gave no reason" } : {}),
    outcomeReported: ["tool_response", "toolResult", "tool_output"].some((name) => isObject(payload[name])),
  };
}

/** Tools of Claude Code that start a sub-agent. Their output is the host's own report, not the text of a server. */
const SUB_AGENT_TOOLS = new Set(["Agent", "Task"]);

/** Returns the duration of a call, and the tokens of a sub-agent. Claude Code reports both. */
function readUsage(payload: JsonObject, tool: string | undefined): Pick<HookEvent, "usage"> {
  const response = payload["tool_response"];
  const tokens = isObject(response) && SUB_AGENT_TOOLS.has(tool ?? "") ? response["totalTokens"] : undefined;
  const ms = payload["duration_ms"];
  const isAmount = (value: unknown): value is number => typeof value === "number" && value >= 0 && value <= 1e9;
  const usage = {
    ...(isAmount(ms) ? { seconds: Math.round(ms) / 1000 } : {}),
    ...(isAmount(tokens) ? { tokens } : {}),
  };
  return Object.keys(usage).length === 0 ? {} : { usage };
}

/** Claude Code sends `agent_id` only for sub-agents. `agent_type` alone can be the type of the main agent. */
function readSubAgent(payload: JsonObject): Pick<HookEvent, "subAgent"> {
  const id = firstNonEmptyString(payload, "agent_id");
  return id === undefined ? {} : { subAgent: { id, type: firstNonEmptyString(payload, "agent_type") ?? "" } };
}

/** Throws PayloadError for an unknown event. The message names the event, if it is a plain word. */
function knownEventKind(host: Host, payload: JsonObject): EventKind {
  const kind = eventKind(payload);
  const name = eventName(payload);
  if (name === undefined) {
    if (host === "copilot" && kind !== undefined) return kind;
    if (host === "copilot" && Object.hasOwn(payload, "source")) return "session";
    throw new PayloadError("the payload has no event name");
  }
  if (kind !== undefined) return kind;
  const shown = /^[a-z][a-z0-9_-]{0,39}$/.test(name) ? ` "${name}"` : "";
  throw new PayloadError(
    `the hook does not know the event${shown}; update the package, or remove the hook for this event`,
  );
}

/**
 * Maps Cursor's older events to tool names. Each of these events is for one kind of tool and does not contain the
 * tool's name.
 */
const TOOL_OF_EVENT: Readonly<Record<string, string>> = {
  beforeshellexecution: "Shell",
  aftershellexecution: "Shell",
  beforereadfile: "Read",
};

function toolName(host: Host, payload: JsonObject): string | undefined {
  const event = firstNonEmptyString(payload, "hook_event_name")?.toLowerCase() ?? "";
  const tool = TOOL_OF_EVENT[event] ?? firstNonEmptyString(payload, "tool_name", "toolName", "tool");
  if (host === "cursor" && /^(before|after)mcpexecution$/.test(event) && tool !== undefined) {
    const server = firstNonEmptyString(payload, "server_name", "mcp_server", "url", "command");
    return `mcp__${serverName(server)}__${tool.replace(/^MCP:/, "")}`;
  }
  const mcp = payload["mcp_context"];
  if (host === "gemini" && isObject(mcp)) {
    const server = firstNonEmptyString(mcp, "server_name");
    const name = firstNonEmptyString(mcp, "tool_name");
    if (server !== undefined && name !== undefined) return `mcp__${server}__${name}`;
  }
  return tool;
}

/** Returns the host name of a URL, or the name of a program. Policies can match either. */
function serverName(server: string | undefined): string {
  if (server === undefined) return "unknown";
  if (URL.canParse(server) && /^https?:/.test(server)) return new URL(server).hostname;
  return server.split(/\s+/).at(-1)?.split("/").at(-1) ?? "unknown";
}

function toolInput(payload: JsonObject): JsonObject {
  const inputs = INPUT_MEMBERS.filter((name) => Object.hasOwn(payload, name));
  if (inputs.length > 1) throw new PayloadError("the call has its arguments twice");
  const [name] = inputs;
  // In Cursor's older events, the arguments are at the top level.
  if (name === undefined) {
    const { command, cwd, file_path: file } = payload;
    if (typeof command === "string") return { command, ...(typeof cwd === "string" && cwd !== "" ? { cwd } : {}) };
    if (typeof file === "string") return { file_path: file };
    throw new PayloadError("the call has no arguments");
  }
  const given = payload[name];
  const value = typeof given === "string" ? readArguments(given) : given;
  if (value === null) return {};
  if (!isObject(value)) throw new PayloadError("the arguments of the call are not an object");
  return value;
}

function wasSuccessful(payload: JsonObject): boolean {
  const event = firstNonEmptyString(payload, "hook_event_name")?.toLowerCase();
  if (event === "posttoolusefailure") return false;
  for (const name of ["tool_response", "toolResult", "tool_output"]) {
    const result = payload[name];
    if (!isObject(result)) continue;
    if (result["success"] === false || result["is_error"] === true || result["isError"] === true) return false;
    if (typeof result["error"] === "string" || isObject(result["error"])) return false;
    if (result["resultType"] === "failure" || result["resultType"] === "denied") return false;
    if (result["interrupted"] === true) return false;
  }
  return true;
}
