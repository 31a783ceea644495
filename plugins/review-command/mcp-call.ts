/** Starts an MCP server, calls one of its tools over standard input and output, and ends the server. */
import type { ReviewRequest } from "../../src/plugin.ts";
import { type Program, runCommand } from "./run-command.ts";

const PROTOCOL_REVISION = "2025-06-18";
const INITIALIZE = 1;
const CALL = 2;

/** Returns the text of the tool's result. Rejects if the server or the tool fails. */
export async function callMcpTool(
  program: Program,
  tool: string,
  request: ReviewRequest,
  signal: AbortSignal,
): Promise<string> {
  const line = (message: object): string => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
  const hello = {
    id: INITIALIZE,
    method: "initialize",
    params: { protocolVersion: PROTOCOL_REVISION, capabilities: {}, clientInfo: { name: "assent", version: "1" } },
  };
  let called = false;
  const output = await runCommand(program, line(hello), signal, (text, send, finish) => {
    if (!called && responseTo(text, INITIALIZE) !== null) {
      called = true;
      send(line({ method: "notifications/initialized" }));
      send(line({ id: CALL, method: "tools/call", params: { name: tool, arguments: request } }));
    }
    if (responseTo(text, CALL) !== null) finish();
  });
  const { result, error } = responseTo(output, CALL) ?? {};
  if (error !== undefined) throw new Error(`the tool ${tool} failed: ${String(error.message).slice(0, 500)}`);
  if (result?.isError === true) throw new Error(`the tool ${tool} reported an error`);
  return textOf(result);
}

interface Response {
  id?: unknown;
  result?: { isError?: unknown; content?: unknown; structuredContent?: unknown };
  error?: { message?: unknown };
}

/** Returns the response with this id among the complete lines; null if it has not arrived. */
function responseTo(text: string, id: number): Response | null {
  for (const line of text.split("\n").slice(0, -1)) {
    try {
      const message = JSON.parse(line) as Response | null;
      if (message !== null && typeof message === "object" && message.id === id && !("method" in message))
        return message;
    } catch {
      // Ignore lines that are not messages. Servers must not write such lines, but some print a greeting.
    }
  }
  return null;
}

/**
 * Returns the structured content as JSON, or else the text of the only content item. Returns an empty string for other
 * results, because several content items are ambiguous.
 */
function textOf(result: Response["result"]): string {
  if (result?.structuredContent !== undefined) return JSON.stringify(result.structuredContent);
  const content = Array.isArray(result?.content) ? (result.content as { type?: unknown; text?: unknown }[]) : [];
  const [only] = content;
  return content.length === 1 && only?.type === "text" && typeof only.text === "string" ? only.text : "";
}
