/**
 * A server of 2026-07-28 that implements what the scenarios of `@modelcontextprotocol/conformance` call, with the
 * extension for tasks. It uses no SDK, because none implements all of it.
 */
import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import {
  embedded,
  image,
  isFromThisMachine,
  PIXEL,
  PROMPTS,
  RICH,
  SILENCE,
  text,
  type Json,
} from "./mcp-conformance.ts";

const VERSION = "2026-07-28";
const KEY = "io.modelcontextprotocol/";
const TASKS = `${KEY}tasks`;
const SERVER_INFO = { name: "conformance", version: "1.0.0" };
const STATUS: Record<number, number> = { [-32601]: 404, [-32020]: 400, [-32021]: 400, [-32022]: 400, [-32602]: 400 };

class Failure extends Error {
  readonly code: number;
  readonly data: Json | undefined;
  constructor(code: number, message: string, data?: Json) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

interface Call {
  params: Json;
  meta: Json;
  capabilities: Json;
  notify(method: string, params: Json): void;
}

/** A tool: its input schema, and its answer. */
type Tool = [schema: Json, run: (given: Json, call: Call) => unknown];

const none: Json = { type: "object", properties: {} };
const said = (what: string): Json => ({ content: [text(what)] });
const form = (message: string, name: string, type = "string"): Json => ({
  method: "elicitation/create",
  params: { message, requestedSchema: { type: "object", properties: { [name]: { type } }, required: [name] } },
});
const sampling = (question: string): Json => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: text(question) }], maxTokens: 100 },
});
const roots: Json = { method: "roots/list", params: {} };

const secret = randomBytes(32);
const sign = (state: string): string => `${state}.${createHmac("sha256", secret).update(state).digest("hex")}`;
function readState(signed: unknown): string | null {
  if (signed === undefined) return null;
  const state = typeof signed === "string" ? (signed.split(".")[0] as string) : "";
  if (sign(state) !== signed) throw new Failure(-32602, "requestState was changed");
  return state;
}

/** Returns the answers if there is an object for each question, and otherwise a result that asks the questions. */
function ask(questions: Record<string, Json>, { params }: Call, state?: string): Json | Record<string, Json> {
  const given = (params["inputResponses"] ?? {}) as Record<string, Json>;
  readState(params["requestState"]);
  if (Object.keys(questions).every((key) => typeof given[key] === "object" && given[key] !== null)) return given;
  return {
    resultType: "input_required",
    inputRequests: questions,
    ...(state === undefined ? {} : { requestState: sign(state) }),
  };
}
const isQuestion = (result: Json): boolean => result["resultType"] === "input_required";

/** Asks the questions, and then returns the result that `then` makes of the answers. */
const asking =
  (questions: Record<string, Json>, state?: string, then: (answers: Json) => unknown = () => said("done")) =>
  (_given: Json, call: Call): unknown => {
    const answers = ask(questions, call, state);
    return isQuestion(answers) ? answers : then(answers);
  };

interface Task {
  facts: Json;
  questions: Record<string, Json>;
  answers: Record<string, unknown>;
  outcome: Json;
  answered(): void;
}
const tasks = new Map<string, Task>();
const hasTasks = ({ capabilities }: Call): boolean => ((capabilities["extensions"] ?? {}) as Json)[TASKS] !== undefined;
const requireTasks = (call: Call): void => {
  if (!hasTasks(call))
    throw new Failure(-32021, "the client does not support tasks", {
      requiredCapabilities: { extensions: { [TASKS]: {} } },
    });
};

/** Starts a task. `work` gets a function that asks the client a question and waits for the answers. */
function begin(work: (ask: (questions: Record<string, Json>) => Promise<unknown>) => Promise<Json>): Json {
  const now = new Date().toISOString();
  const facts: Json = {
    taskId: randomUUID(),
    status: "working",
    createdAt: now,
    lastUpdatedAt: now,
    ttlMs: 60_000,
    pollIntervalMs: 50,
  };
  const task: Task = { facts, questions: {}, answers: {}, outcome: {}, answered: () => {} };
  tasks.set(String(facts["taskId"]), task);
  const end = (status: string, outcome: Json): void => {
    if (facts["status"] === "cancelled") return;
    facts["status"] = status;
    task.outcome = outcome;
  };
  work(async (questions) => {
    task.questions = { ...questions };
    facts["status"] = "input_required";
    while (Object.keys(task.questions).length > 0) await new Promise<void>((resolve) => (task.answered = resolve));
    facts["status"] = "working";
    return task.answers;
  }).then(
    (result) => end("completed", { result }),
    (error: Failure) => end("failed", { error: { code: error.code ?? -32603, message: error.message } }),
  );
  return { resultType: "task", ...facts };
}

const schema = (...names: string[]): Json => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
});

function conformanceServer() {
  const listeners = new Map<symbol, { filter: Json; id: unknown; notify: Call["notify"] }>();
  let changes = 0;
  const changed = (kind: string) => (): Json => {
    changes++;
    for (const { filter, notify, id } of listeners.values())
      if (filter[`${kind}ListChanged`] === true)
        notify(`notifications/${kind}/list_changed`, { _meta: { [`${KEY}subscriptionId`]: id } });
    return said(`The ${kind} have changed.`);
  };

  const tools: Record<string, Tool> = {
    test_simple_text: [none, () => said("This is a simple text response for testing.")],
    test_image_content: [none, () => ({ content: [image] })],
    test_audio_content: [none, () => ({ content: [{ type: "audio", data: SILENCE, mimeType: "audio/wav" }] })],
    test_embedded_resource: [none, () => ({ content: [embedded("test://embedded-resource")] })],
    test_multiple_content_types: [
      none,
      () => ({ content: [text("Several."), image, embedded("test://mixed-content-resource")] }),
    ],
    test_error_handling: [
      none,
      () => ({ ...said("This tool intentionally returns an error for testing"), isError: true }),
    ],
    test_tool_with_progress: [
      none,
      (_given, { meta, notify }) => {
        for (const progress of [0, 50, 100])
          notify("notifications/progress", { progressToken: meta["progressToken"], progress, total: 100 });
        return said("done");
      },
    ],
    test_logging_tool: [
      none,
      (_given, { meta, notify }) => {
        if (meta[`${KEY}logLevel`] !== undefined) notify("notifications/message", { level: "info", data: "logged" });
        return said("done");
      },
    ],
    json_schema_2020_12_tool: [RICH, () => said("done")],
    test_header_tool: [
      { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } }, required: ["region"] },
      ({ region }) => said(String(region)),
    ],
    test_missing_capability: [
      none,
      (_given, { capabilities }) => {
        if (capabilities["sampling"] === undefined)
          throw new Failure(-32021, "sampling is required", { requiredCapabilities: { sampling: {} } });
        return said("done");
      },
    ],
    test_streaming_elicitation: [none, asking({ name: form("What is your name?", "name") })],
    test_trigger_tool_change: [none, changed("tools")],
    test_trigger_prompt_change: [none, changed("prompts")],
    test_input_required_result_elicitation: [none, asking({ user_name: form("What is your name?", "name") })],
    test_input_required_result_sampling: [
      none,
      asking({ capital_question: sampling("What is the capital of France?") }),
    ],
    test_input_required_result_list_roots: [none, asking({ client_roots: roots })],
    test_input_required_result_request_state: [
      none,
      asking({ confirm: form("Please confirm", "ok", "boolean") }, "confirm", () => said("state-ok")),
    ],
    test_input_required_result_multiple_inputs: [
      none,
      asking(
        {
          user_name: form("What is your name?", "name"),
          greeting: sampling("Generate a greeting"),
          client_roots: roots,
        },
        "several",
      ),
    ],
    test_input_required_result_multi_round: [
      none,
      (_given, call) => {
        const state = readState(call.params["requestState"]);
        if (state === null) return ask({ step1: form("Step 1: What is your name?", "name") }, call, "one");
        const second = { step2: form("Step 2: What is your favorite color?", "color") };
        return state === "one" ? ask(second, call, "two") : asking(second, "two")({}, call);
      },
    ],
    test_input_required_result_tampered_state: [none, asking({ confirm: form("Please confirm", "ok") }, "tampered")],
    test_input_required_result_capabilities: [
      none,
      (_given, call) =>
        ask(
          {
            ...(call.capabilities["sampling"] === undefined ? {} : { greeting: sampling("Generate a greeting") }),
            ...(call.capabilities["elicitation"] === undefined ? {} : { user_name: form("Your name?", "name") }),
          },
          call,
        ),
    ],
    greet: [schema("name"), ({ name }) => said(`Hello, ${String(name)}!`)],
    slow_compute: [
      { type: "object", properties: { seconds: { type: "number" }, label: { type: "string" } } },
      ({ seconds }, call) => {
        const work = async (): Promise<Json> => {
          // A timer of a cancelled task must not keep the process of the test alive.
          await delay(Number(seconds ?? 0) * 1000, undefined, { ref: false });
          return said("computed");
        };
        return hasTasks(call) && Number(seconds) > 0 ? begin(work) : work();
      },
    ],
    failing_job: [
      none,
      (_given, call) => {
        requireTasks(call);
        return begin(async () => ({ ...said("the job failed"), isError: true }));
      },
    ],
    protocol_error_job: [
      none,
      (_given, call) => {
        requireTasks(call);
        return begin(() => Promise.reject(new Failure(-32603, "the job crashed")));
      },
    ],
    confirm_delete: [
      schema("filename"),
      (_given, call) => {
        requireTasks(call);
        return begin(async (question) => {
          await question({ confirm: form("Delete the file?", "confirm", "boolean") });
          return said("deleted");
        });
      },
    ],
    multi_input: [
      none,
      (_given, call) => {
        requireTasks(call);
        return begin(async (question) => {
          await question({ first: form("First?", "name"), second: form("Second?", "name") });
          return said("both");
        });
      },
    ],
    test_tool_with_task: [
      none,
      (_given, call) => {
        requireTasks(call);
        const answers = ask({ user_name: form("What is your name?", "name") }, call);
        if (isQuestion(answers)) return answers;
        const { content } = answers["user_name"] as { content?: Json };
        return begin(async () => said(`Hello, ${JSON.stringify(content)}`));
      },
    ],
  };

  const methods: Record<string, (call: Call) => unknown> = {
    "server/discover": () => ({
      supportedVersions: [VERSION],
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: {},
        completions: {},
        extensions: { [TASKS]: {} },
      },
      ttlMs: 0,
      cacheScope: "public",
    }),
    "tools/list": () => ({
      tools: Object.entries(tools).map(([name, [inputSchema]]) => ({
        name,
        description: `Is called ${name}.`,
        inputSchema,
      })),
      ttlMs: 0,
      cacheScope: "public",
    }),
    "tools/call": (call) => {
      const { name, arguments: given } = call.params;
      const tool = Object.hasOwn(tools, String(name)) ? tools[String(name)] : undefined;
      if (tool === undefined) throw new Failure(-32602, `there is no tool ${String(name)}`);
      return tool[1]((given ?? {}) as Json, call);
    },
    "prompts/list": () => ({
      prompts: [
        ...Object.entries(PROMPTS).map(([name, names]) => ({
          name,
          description: `Is called ${name}.`,
          arguments: names.map((each) => ({ name: each, required: true })),
        })),
        { name: "test_input_required_result_prompt", description: "Asks for its context." },
        ...(changes > 0 ? [{ name: "later", description: "Came later." }] : []),
      ],
      ttlMs: 0,
      cacheScope: "public",
    }),
    "prompts/get": (call) => {
      const { name, arguments: given } = call.params;
      const { arg1, arg2, resourceUri } = (given ?? {}) as Record<string, string>;
      const contents: Record<string, Json[]> = {
        test_simple_prompt: [text("A prompt.")],
        test_prompt_with_arguments: [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
        test_prompt_with_embedded_resource: [embedded(String(resourceUri)), text("Read it.")],
        test_prompt_with_image: [image, text("Look at it.")],
      };
      if (name === "test_input_required_result_prompt")
        return asking({ user_context: form("What context should the prompt use?", "context") }, undefined, () => ({
          messages: [{ role: "user", content: text("With context.") }],
        }))({}, call);
      const chosen = contents[String(name)];
      if (chosen === undefined) throw new Failure(-32602, `there is no prompt ${String(name)}`);
      return { messages: chosen.map((content) => ({ role: "user", content })) };
    },
    "resources/list": () => ({
      resources: ["static-text", "static-binary"].map((name) => ({
        uri: `test://${name}`,
        name,
        description: `Is called ${name}.`,
      })),
      ttlMs: 0,
      cacheScope: "public",
    }),
    "resources/templates/list": () => ({
      resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template" }],
      ttlMs: 0,
      cacheScope: "public",
    }),
    "resources/read": ({ params: { uri } }) => {
      const cache = { ttlMs: 0, cacheScope: "private" };
      if (uri === "test://static-text")
        return { contents: [{ uri, mimeType: "text/plain", text: "Stays." }], ...cache };
      if (uri === "test://static-binary") return { contents: [{ uri, mimeType: "image/png", blob: PIXEL }], ...cache };
      const id = /^test:\/\/template\/(.+)\/data$/.exec(String(uri))?.[1];
      if (id === undefined) throw new Failure(-32602, "Resource not found", { uri });
      const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
      return { contents: [{ uri, mimeType: "application/json", text: data }], ...cache };
    },
    "completion/complete": () => ({ completion: { values: ["paris"], total: 1, hasMore: false } }),
    "tasks/get": (call) => {
      const { facts, questions, outcome } = findTask(call);
      const { status } = facts;
      return { ...facts, ...(status === "input_required" ? { inputRequests: questions } : {}), ...outcome };
    },
    "tasks/update": (call) => {
      const task = findTask(call);
      for (const [key, answer] of Object.entries((call.params["inputResponses"] ?? {}) as Json))
        if (Object.hasOwn(task.questions, key)) {
          delete task.questions[key];
          task.answers[key] = answer;
        }
      task.answered();
      return {};
    },
    "tasks/cancel": (call) => {
      const { facts } = findTask(call);
      if (["working", "input_required"].includes(String(facts["status"]))) facts["status"] = "cancelled";
      return {};
    },
  };

  function findTask(call: Call): Task {
    requireTasks(call);
    const task = tasks.get(String(call.params["taskId"]));
    if (task === undefined) throw new Failure(-32602, "the task does not exist");
    return task;
  }

  /** Whether a header repeats the value. Values that are not ASCII are base64. */
  function repeats(header: string | null, value: unknown): boolean {
    const [, base64] = /^=\?base64\?(.*)\?=$/.exec(header ?? "") ?? [];
    if (base64 === undefined) return header === value;
    return (
      /^(?:[\w+/]{4})*(?:[\w+/]{2}==|[\w+/]{3}=)?$/.test(base64) && Buffer.from(base64, "base64").toString() === value
    );
  }

  function checkHeaders({ headers }: Request, method: string, params: Json, meta: Json): void {
    const member = /^tasks\/(?:get|update|cancel)$/.test(method)
      ? "taskId"
      : { "tools/call": "name", "prompts/get": "name", "resources/read": "uri" }[method];
    const fine =
      headers.get("mcp-protocol-version") === meta[`${KEY}protocolVersion`] &&
      headers.get("mcp-method") === method &&
      (member === undefined || repeats(headers.get("mcp-name"), params[member])) &&
      (params["name"] !== "test_header_tool" ||
        repeats(headers.get("mcp-param-region"), ((params["arguments"] ?? {}) as Json)["region"] ?? null));
    if (!fine) throw new Failure(-32020, "a header differs from the body");
  }

  return async (request: Request): Promise<Response> => {
    if (!isFromThisMachine(request)) return new Response(null, { status: 403 });
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method, params = {} } = (await request.json()) as { id?: unknown; method: string; params?: Json };
    if (id === undefined) return new Response(null, { status: 202 });
    const failed = ({ code = -32603, message, data }: Partial<Failure>): Response =>
      Response.json(
        { jsonrpc: "2.0", id, error: { code, message, ...(data === undefined ? {} : { data }) } },
        { status: STATUS[code] ?? 200 },
      );
    try {
      const meta = (params["_meta"] ?? {}) as Json;
      const { [`${KEY}protocolVersion`]: version, [`${KEY}clientCapabilities`]: capabilities } = meta;
      if (version === undefined || capabilities === undefined) throw new Failure(-32602, "_meta is incomplete");
      checkHeaders(request, method, params, meta);
      if (version !== VERSION)
        throw new Failure(-32022, "unsupported version", { supported: [VERSION], requested: version });
      const notifications: Json[] = [];
      const call: Call = {
        params,
        meta,
        capabilities: capabilities as Json,
        notify: (name, of) => void notifications.push({ jsonrpc: "2.0", method: name, params: of }),
      };
      const event = (message: Json): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`;
      const headers = { "content-type": "text/event-stream" };
      if (method === "subscriptions/listen") {
        const filter = (params["notifications"] ?? {}) as Json;
        const key = Symbol("listener");
        const encoder = new TextEncoder();
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            const notify: Call["notify"] = (name, of) =>
              controller.enqueue(encoder.encode(event({ jsonrpc: "2.0", method: name, params: of })));
            listeners.set(key, { filter, id, notify });
            notify("notifications/subscriptions/acknowledged", {
              notifications: filter,
              _meta: { [`${KEY}subscriptionId`]: id },
            });
          },
          cancel: () => void listeners.delete(key),
        });
        return new Response(body, { headers });
      }
      const run = Object.hasOwn(methods, method) ? methods[method] : undefined;
      if (run === undefined) throw new Failure(-32601, `there is no method ${method}`);
      const result = (await run(call)) as Json;
      const reply = {
        jsonrpc: "2.0",
        id,
        result: { resultType: "complete", ...result, _meta: { [`${KEY}serverInfo`]: SERVER_INFO } },
      };
      return notifications.length === 0
        ? Response.json(reply)
        : new Response([...notifications, reply].map(event).join(""), { headers });
    } catch (error) {
      return failed(error as Failure);
    }
  };
}

/** Starts the server. It serves MCP at `/mcp`. */
export function startConformanceServer2026(): Promise<RunningServer> {
  return serve(conformanceServer(), { host: "127.0.0.1", port: 0 });
}
