/**
 * Content without a decision: a raw client and a raw server send everything that they can; each gets only what the
 * protocol defines.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setUp, type Setup } from "../../support/mcp.ts";
import { ASSENT } from "../../support/process.ts";
import { until } from "../../support/wait.ts";

type Message = { id?: unknown; method?: string; params?: Record<string, unknown>; result?: unknown; error?: unknown };

const POLICY = `policy: mcp
rules:
  - name: home
    tool: mcp.raw
    when: "!has(context.mcp) || !has(context.mcp.meta) || context.mcp.meta['com.example/tenant'] == 'home'"
    effect: allow
`;
/** Logs each line that it gets. A tool call asks the client what its argument says, and returns the client's answer. */
const SERVER = `
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const CAPABILITIES = { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {}, logging: {} };
const RESULTS = {
  initialize: { protocolVersion: "2025-11-25", serverInfo: { name: "raw", version: "1" }, capabilities: CAPABILITIES },
  "tools/list": { tools: [{ name: "poke", inputSchema: { type: "object" }, execution: { taskSupport: "required" } }] },
  "prompts/list": { prompts: [{ name: "greet" }] },
  "resources/list": { resources: [{ uri: "note://one", name: "one" }] },
  "completion/complete": { completion: { values: [] } },
};
let asked = null;
createInterface({ input: process.stdin }).on("line", (line) => {
  appendFileSync(process.env.MCP_RECORD, line + "\\n");
  const { id, method, params, result, error } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "tools/call" && params.arguments?.ask !== undefined) {
    asked = id;
    say({ id: "question", method: params.arguments.ask, params: { of: 1 } });
  } else if (method === undefined) say({ id: asked, result: { content: [], structuredContent: { result, error } } });
  else say({ id, result: RESULTS[method] ?? {} });
});
`;
const TENANT = "com.example/tenant";
const MARK = "role=admin";

describe("content that is not decided on", () => {
  let setup: Setup;
  let child: ReturnType<typeof spawn>;
  const heard: Message[] = [];
  let last = 0;
  const say = (message: object): void => void child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  async function ask(method: string, params: object): Promise<Message> {
    const id = ++last;
    say({ id, method, params });
    const found = (): Message | undefined => heard.find((each) => each.id === id && each.method === undefined);
    await until(`"${method}" is answered`, () => found() !== undefined);
    return found() as Message;
  }
  const arrived = (): Message[] =>
    readFileSync(setup.env["MCP_RECORD"] as string, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Message);
  const paramsOf = (method: string): unknown => arrived().findLast((each) => each.method === method)?.params;

  before(async () => {
    setup = await setUp(POLICY);
    const [server, config] = [join(setup.folder, "server.mjs"), join(setup.folder, "assent-mcp.yaml")];
    writeFileSync(server, SERVER);
    const raw = { command: process.execPath, args: [server], meta: ["com.example/*"], open: ["resources/read"] };
    writeFileSync(config, JSON.stringify({ wait: 0, servers: { raw } }));
    child = spawn(process.execPath, [...ASSENT, "mcp", "proxy", "--config", config], {
      env: setup.env,
      stdio: ["pipe", "pipe", "ignore"],
    });
    let rest = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() as string;
      heard.push(...lines.map((line) => JSON.parse(line) as Message));
    });
    const clientInfo = { name: `${"x".repeat(99)}😀`, version: "1" };
    await ask("initialize", { protocolVersion: "2025-11-25", capabilities: { roots: {}, tasks: {} }, clientInfo });
    say({ method: "notifications/initialized", params: { _meta: { role: MARK } } });
  });
  after(async () => {
    child?.kill("SIGKILL");
    await setup?.close();
  });

  test("a notification carries no other members", async () => {
    const count = (): number => arrived().filter(({ method }) => method === "notifications/roots/list_changed").length;
    say({ method: "notifications/roots/list_changed", params: { _meta: { [TENANT]: MARK }, more: MARK } });
    await until("it has arrived", () => count() === 1);
    assert.equal(paramsOf("notifications/roots/list_changed"), undefined);
  });

  test("messages without a decision have no decided keys, and none that the protocol does not define", async () => {
    const more = { _meta: { [TENANT]: "other", role: MARK }, more: MARK, task: { role: MARK }, requestState: MARK };
    const ref = { type: "ref/prompt", name: "greet" };
    const [argument, context] = [{ name: "a", value: "b" }, { arguments: { a: "b" } }];
    await ask("completion/complete", { ref, argument, context, ...more });
    assert.deepEqual(paramsOf("completion/complete"), { ref, argument, context });
    const ofResource = { type: "ref/resource", uri: "note://{name}" };
    await ask("completion/complete", { ref: ofResource, argument, ...more });
    assert.deepEqual(paramsOf("completion/complete"), { ref: ofResource, argument });
    await ask("resources/subscribe", { uri: "note://one", ...more });
    assert.deepEqual(paramsOf("resources/subscribe"), { uri: "note://one" });
    await ask("logging/setLevel", { level: { role: MARK }, ...more });
    assert.deepEqual(paramsOf("logging/setLevel"), { level: null });
    // Allowed by the configuration that names the keys.
    await ask("resources/read", { uri: "note://one", ...more });
    assert.deepEqual(paramsOf("resources/read"), { uri: "note://one", _meta: { [TENANT]: "other" } });
  });

  test("a call's members are those that were decided, and trace context has its defined form", async () => {
    const trace = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "a=b" };
    for (const [_meta, sent] of [
      [
        { ...trace, [TENANT]: "home", progressToken: { role: MARK } },
        { ...trace, [TENANT]: "home" },
      ],
      [{ traceparent: MARK, tracestate: MARK }, {}],
      [{ tracestate: MARK, Traceparent: trace.traceparent }, {}],
      [{ traceparent: { role: MARK }, tracestate: "a=b", baggage: MARK }, {}],
      [[MARK], {}],
      [null, {}],
      [MARK, {}],
    ] as const) {
      await ask("prompts/get", { name: "greet", _meta, more: MARK, inputResponses: { a: MARK } });
      const { progressToken: _, ...meta } = ((paramsOf("prompts/get") as Message["params"])?.["_meta"] ??
        {}) as object & {
        progressToken?: unknown;
      };
      assert.deepEqual(meta, sent);
      assert.deepEqual({ ...(paramsOf("prompts/get") as object), _meta: 0 }, { name: "greet", _meta: 0 });
    }
    const task = { ttl: 5000, role: MARK };
    await ask("tools/call", { name: "poke", arguments: { n: 1 }, task, more: MARK, _meta: { role: MARK } });
    await until("it was called", () => paramsOf("tools/call") !== undefined);
    const { _meta: __, ...sent } = paramsOf("tools/call") as { _meta?: unknown };
    assert.deepEqual(sent, { name: "poke", arguments: { n: 1 }, task: { ttl: 5000 } });
    const denied = await ask("tools/call", { name: "poke", arguments: { n: 2 }, _meta: { [TENANT]: "other" } });
    assert.match(JSON.stringify(denied), /denied/);
    assert.ok(!arrived().some(({ params }) => JSON.stringify(params ?? {}).includes('"n":2')));
  });

  test("a server can ask the client only what the protocol defines", async () => {
    for (const method of ["workspace/run", "tools/call", "elicitation/Create", "sampling/createMessage2"]) {
      const { result } = await ask("tools/call", { name: "poke", arguments: { ask: method } });
      assert.match(JSON.stringify(result), /is not supported by the proxy/);
      assert.ok(!heard.some((each) => each.method === method));
    }
    const passed = ask("tools/call", { name: "poke", arguments: { ask: "roots/list" } });
    await until("it is asked", () => heard.some(({ method }) => method === "roots/list"));
    say({ id: heard.find(({ method }) => method === "roots/list")?.id, result: { roots: [] } });
    assert.match(JSON.stringify((await passed).result), /"roots":\[\]/);
  });
});
