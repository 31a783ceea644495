/**
 * A server that implements what the scenarios of `@modelcontextprotocol/conformance` call, with protocol 2025-11-25
 * over HTTP.
 */
import { Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { serve, type RunningServer } from "../../src/serve/index.ts";

export type Json = Record<string, unknown>;

export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
export const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
export const text = (said: string): Json => ({ type: "text", text: said });
export const image: Json = { type: "image", data: PIXEL, mimeType: "image/png" };
export const embedded = (uri: string): Json => ({
  type: "resource",
  resource: { uri, mimeType: "text/plain", text: "A resource inside of an answer." },
});

const properties = (...names: string[]): Json => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
});
/** Keywords of JSON Schema 2020-12 that a tool list must preserve. */
export const RICH = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // eslint-disable-next-line unicorn/no-thenable
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};
const SCHEMAS: Record<string, Json> = {
  test_simple_text: properties(),
  test_image_content: properties(),
  test_audio_content: properties(),
  test_embedded_resource: properties(),
  test_multiple_content_types: properties(),
  test_tool_with_logging: properties(),
  test_tool_with_progress: properties(),
  test_error_handling: properties(),
  test_sampling: properties("prompt"),
  test_elicitation: properties("message"),
  test_elicitation_sep1034_defaults: properties(),
  test_elicitation_sep1330_enums: properties(),
  test_reconnection: properties(),
  json_schema_2020_12_tool: RICH,
};

const DEFAULTS: Json = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
};
const VALUES = ["option1", "option2", "option3"];
const titled = ["value1", "value2", "value3"].map((value, i) => ({ const: value, title: `Option ${i + 1}` }));
const ENUMS: Json = {
  untitledSingle: { type: "string", enum: VALUES },
  titledSingle: { type: "string", oneOf: titled },
  legacyEnum: {
    type: "string",
    enum: ["opt1", "opt2", "opt3"],
    enumNames: ["Option One", "Option Two", "Option Three"],
  },
  untitledMulti: { type: "array", items: { type: "string", enum: VALUES } },
  titledMulti: { type: "array", items: { anyOf: titled } },
};

function server(): Server {
  const made = new Server(
    { name: "conformance", version: "1.0.0" },
    { capabilities: { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} } },
  );
  // The SDK's types are narrower than the results that this server returns.
  const on = (method: string, answer: (params: Json, ctx: Context) => unknown): void =>
    (made.setRequestHandler as unknown as (method: string, handler: unknown) => void)(
      method,
      (request: { params?: Json }, ctx: Context) => answer(request.params ?? {}, ctx),
    );
  on("tools/list", () => ({
    tools: Object.entries(SCHEMAS).map(([name, inputSchema]) => ({
      name,
      description: `Is called ${name}.`,
      inputSchema,
    })),
  }));
  on("tools/call", ({ name, arguments: given, _meta }, ctx) =>
    call(String(name), (given ?? {}) as Json, ((_meta ?? {}) as Json)["progressToken"], ctx.mcpReq),
  );
  on("resources/list", () => ({
    resources: ["static-text", "static-binary", "watched-resource"].map((name) => ({ uri: `test://${name}`, name })),
  }));
  on("resources/templates/list", () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template" }],
  }));
  on("resources/read", ({ uri }) => {
    if (uri === "test://static-binary") return { contents: [{ uri, mimeType: "image/png", blob: PIXEL }] };
    const id = /^test:\/\/template\/(.+)\/data$/.exec(String(uri))?.[1];
    const said = id === undefined ? "A text that stays." : JSON.stringify({ id, data: `Data for ID: ${id}` });
    return { contents: [{ uri, mimeType: "text/plain", text: said }] };
  });
  on("resources/subscribe", () => ({}));
  on("resources/unsubscribe", () => ({}));
  on("prompts/list", () => ({
    prompts: Object.entries(PROMPTS).map(([name, names]) => ({
      name,
      description: `Is called ${name}.`,
      arguments: names.map((each) => ({ name: each, required: true })),
    })),
  }));
  on("prompts/get", ({ name, arguments: given }) => {
    const { arg1, arg2, resourceUri } = (given ?? {}) as Record<string, string>;
    const contents: Record<string, Json[]> = {
      test_simple_prompt: [text("A prompt.")],
      test_prompt_with_arguments: [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
      test_prompt_with_embedded_resource: [embedded(String(resourceUri)), text("Read it.")],
      test_prompt_with_image: [image, text("Look at it.")],
    };
    return { messages: contents[String(name)]?.map((content) => ({ role: "user", content })) };
  });
  on("completion/complete", () => ({ completion: { values: ["paris"], total: 1, hasMore: false } }));
  on("logging/setLevel", () => ({}));
  return made;
}

export const PROMPTS: Record<string, string[]> = {
  test_simple_prompt: [],
  test_prompt_with_arguments: ["arg1", "arg2"],
  test_prompt_with_embedded_resource: ["resourceUri"],
  test_prompt_with_image: [],
};

interface Context {
  mcpReq: {
    notify(notification: Json): Promise<void>;
    send(request: Json, options?: unknown): Promise<Json>;
    elicitInput(question: Json): Promise<Json>;
    requestSampling(question: Json): Promise<Json>;
  };
}

async function call(
  name: string,
  given: Json,
  token: unknown,
  { notify, elicitInput, requestSampling }: Context["mcpReq"],
) {
  const form = async (message: unknown, fields: Json, required: string[] = []): Promise<Json> => {
    const answer = await elicitInput({
      mode: "form",
      message,
      requestedSchema: { type: "object", properties: fields, required },
    });
    return { content: [text(`Elicitation completed: ${JSON.stringify(answer)}`)] };
  };
  switch (name) {
    case "test_image_content":
      return { content: [image] };
    case "test_audio_content":
      return { content: [{ type: "audio", data: SILENCE, mimeType: "audio/wav" }] };
    case "test_embedded_resource":
      return { content: [embedded("test://embedded-resource")] };
    case "test_multiple_content_types":
      return { content: [text("Several."), image, embedded("test://mixed-content-resource")] };
    case "test_tool_with_logging":
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"])
        await notify({ method: "notifications/message", params: { level: "info", data } });
      break;
    case "test_tool_with_progress":
      for (const progress of [0, 50, 100])
        await notify({ method: "notifications/progress", params: { progressToken: token, progress, total: 100 } });
      break;
    case "test_error_handling":
      return { content: [text("This tool intentionally returns an error for testing")], isError: true };
    case "test_sampling": {
      const messages = [{ role: "user", content: text(String(given["prompt"])) }];
      return {
        content: [text(`LLM response: ${JSON.stringify(await requestSampling({ messages, maxTokens: 100 }))}`)],
      };
    }
    case "test_elicitation":
      return form(given["message"], { username: { type: "string" }, email: { type: "string" } }, ["username", "email"]);
    case "test_elicitation_sep1034_defaults":
      return form("Please look at the defaults.", DEFAULTS);
    case "test_elicitation_sep1330_enums":
      return form("Please choose.", ENUMS);
  }
  return { content: [text("This is a simple text response for testing.")] };
}

/** Whether host and origin are this machine, as the scenario `dns-rebinding-protection` requires. */
export function isFromThisMachine({ headers }: Request): boolean {
  const addresses = [`http://${headers.get("host")}`, headers.get("origin") ?? "http://localhost"];
  return addresses.every((address) => /^(?:127\.0\.0\.1|localhost)$/.test(new URL(address).hostname));
}

/** Starts the server. Resolves to its address, which ends with `/mcp`. */
export function startConformanceServer(): Promise<RunningServer> {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  return serve(
    async (request) => {
      const id = request.headers.get("mcp-session-id");
      if (!isFromThisMachine(request)) return new Response(null, { status: 403 });
      if (request.headers.get("mcp-protocol-version") === "2026-07-28") return new Response(null, { status: 400 });
      if (id !== null) return sessions.get(id)?.handleRequest(request) ?? new Response(null, { status: 404 });
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: (fresh) => void sessions.set(fresh, transport),
      });
      await server().connect(transport);
      return transport.handleRequest(request);
    },
    { host: "127.0.0.1", port: 0 },
  );
}
