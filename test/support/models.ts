/**
 * Fake language models on loopback, so that agents need no network. A model requests one tool call after the other,
 * then ends the conversation.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Model {
  url: string;
  /** Results of the calls so far, as the agent reported them. */
  results: string[];
  /** Names of the tools that the agent offered. */
  tools: string[];
  close(): void;
}

type Json = Record<string, unknown>;
/** A tool call. `name` is the agent's name for the tool. */
export interface ModelCall {
  name: string;
  /** The group that contains the tool, for agents that group tools. */
  namespace?: string;
  input: Record<string, unknown>;
}
interface Dialect {
  /** Returns true if a request asks for the next step of the conversation. */
  asks(path: string, body: Json): boolean;
  /** Returns the results of the previous calls. */
  results(body: Json): unknown[];
  /** Returns the response to the n-th request, as an event stream. */
  answer(n: number, call: ModelCall | undefined): string;
}

const events = (list: (Json & { type: string })[]): string =>
  list.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`).join("");
const objects = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);

const DIALECTS = {
  messages: {
    asks: (path, body) =>
      path.startsWith("/v1/messages") && !path.includes("count_tokens") && objects(body["tools"]).length > 0,
    results: ({ messages }) =>
      objects(messages)
        .flatMap(({ content }) => objects(content))
        .filter(({ type }) => type === "tool_result")
        .map(({ content }) => content),
    answer(n, call) {
      const id = `toolu_${process.pid}_${n}`;
      const message = {
        id: `msg_${n}`,
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        stop_reason: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      };
      return events([
        { type: "message_start", message },
        {
          type: "content_block_start",
          index: 0,
          content_block:
            call === undefined ? { type: "text", text: "" } : { type: "tool_use", id, name: call.name, input: {} },
        },
        {
          type: "content_block_delta",
          index: 0,
          delta:
            call === undefined
              ? { type: "text_delta", text: "done" }
              : { type: "input_json_delta", partial_json: JSON.stringify(call.input) },
        },
        { type: "content_block_stop", index: 0 },
        {
          type: "message_delta",
          delta: { stop_reason: call === undefined ? "end_turn" : "tool_use" },
          usage: { output_tokens: 1 },
        },
        { type: "message_stop" },
      ]);
    },
  },
  responses: {
    asks: (path) => path.includes("/responses"),
    results: ({ input }) =>
      objects(input)
        .filter(({ type }) => type === "function_call_output")
        .map(({ output }) => output),
    answer: (n, call) =>
      events([
        { type: "response.created", response: { id: `r_${n}` } },
        {
          type: "response.output_item.done",
          output_index: 0,
          item:
            call === undefined
              ? { type: "message", id: `m_${n}`, role: "assistant", content: [{ type: "output_text", text: "done" }] }
              : {
                  type: "function_call",
                  id: `fc_${n}`,
                  call_id: `call_${process.pid}_${n}`,
                  name: call.name,
                  ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
                  arguments: JSON.stringify(call.input),
                },
        },
        {
          type: "response.completed",
          response: { id: `r_${n}`, usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
        },
      ]),
  },
  contents: {
    asks: (path, body) => path.includes("streamGenerateContent") && objects(body["tools"]).length > 0,
    results: ({ contents }) =>
      objects(contents)
        .flatMap(({ parts }) => objects(parts))
        .filter((part) => part["functionResponse"] !== undefined)
        .map((part) => part["functionResponse"]),
    answer: (_, call) => {
      const part = call === undefined ? { text: "done" } : { functionCall: { name: call.name, args: call.input } };
      const content = { role: "model", parts: [part] };
      const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
      return `data: ${JSON.stringify({ candidates: [{ content, finishReason: "STOP", index: 0 }], usageMetadata })}\n\n`;
    },
  },
} as const satisfies Record<string, Dialect>;
/** Returns the names of the tools, in each format that agents use. */
function namesIn(tools: unknown): string[] {
  return objects(tools).flatMap(({ name, tools: inner, functionDeclarations: declared }) => [
    ...(typeof name === "string" ? [name] : []),
    ...[...namesIn(inner), ...namesIn(declared)].map((each) => (typeof name === "string" ? `${name} ${each}` : each)),
  ]);
}

export type ModelDialect = keyof typeof DIALECTS;

export async function startModel(dialect: ModelDialect, calls: readonly ModelCall[]): Promise<Model> {
  const { asks, results, answer }: Dialect = DIALECTS[dialect];
  const heard: string[] = [];
  const tools: string[] = [];
  const server: Server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      const body = text.startsWith("{") ? (JSON.parse(text) as Json) : {};
      if (!asks(request.url ?? "", body)) {
        // Token counts, model lists, and side requests outside the conversation.
        response.setHeader("content-type", "application/json");
        response.end('{"input_tokens":1,"totalTokens":1,"data":[],"models":[]}');
        return;
      }
      const before = results(body);
      tools.splice(0, Infinity, ...namesIn(body["tools"]));
      heard.splice(0, Infinity, ...before.map((each) => JSON.stringify(each)));
      response.setHeader("content-type", "text/event-stream");
      response.end(answer(before.length, calls[before.length]));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    results: heard,
    tools,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
