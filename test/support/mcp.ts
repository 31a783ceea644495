/** Runs the MCP proxy between an official client and a server that records the calls it receives. */
import { spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, type ClientOptions } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { serve, type RunningServer } from "../../src/serve/index.ts";
import { ASSENT, MAIN } from "./process.ts";
import { commandOf, NODE, scriptOf, type RuntimeName } from "./runtimes.ts";
import { until } from "./wait.ts";
import { startService, type Service, type ServiceOptions } from "./service.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export const SERVER: readonly string[] = [process.execPath, ...NODE, scriptOf("test/support/mcp-server"), "stdio"];

export const POLICY = `policy: mcp
rules:
  - name: echo and all that reads
    tool: mcp.notes
    operation: ["echo", "slow", "broken", "placed", "typed", "ask", "resources/read", "prompts/get", "elicitation/create"]
    effect: allow
  - name: writes
    tool: mcp.notes
    operation: write
    when: params.n < 100
    effect: allow
  - name: large writes
    tool: mcp.notes
    operation: write
    effect: require_approval
    reason: writes of 100 and more need approval
  - name: acceptance
    tool: assent-mcp
    effect: allow
`;

export interface Setup {
  service: Service;
  listening: RunningServer;
  folder: string;
  /** Environment variables of a proxy. */
  env: Record<string, string>;
  /** Returns the calls that reached the server. */
  record(): { name: string; given?: unknown; meta?: Record<string, unknown> | null }[];
  describe(name: string, description: string): void;
  /** Returns all actions, newest first. */
  actions(): Promise<Record<string, unknown>[]>;
  /** Returns a function that resolves to true if a call with this `n` is pending approval. */
  waits(n: number): () => Promise<boolean>;
  decide(approve: boolean, reason?: string): Promise<void>;
  close(): Promise<void>;
}

export async function setUp(policy: string = POLICY, options: ServiceOptions = {}): Promise<Setup> {
  const service = await startService({ ...options, policy });
  const listening = await serve((request, info) => service.runtime.fetch(request, info), {
    host: "127.0.0.1",
    port: 0,
  });
  const folder = temporaryFolder("assent-mcp-");
  const body = { name: "mcp", preset: "agent", agent_id: "bot" };
  const { key } = (await service.call("POST", "/v1/api-keys", { key: service.admin, body })).body as { key: string };
  const [record, descriptions] = [join(folder, "record"), join(folder, "descriptions")];
  writeFileSync(record, "");
  writeFileSync(descriptions, "");
  const lines = (): string[] =>
    readFileSync(record, "utf8")
      .trim()
      .split("\n")
      .filter((line) => line !== "");
  const actions = async (): Promise<Record<string, unknown>[]> =>
    (await service.call("GET", "/v1/actions?limit=200", { key: service.admin })).body.actions;
  return {
    service,
    listening,
    folder,
    env: {
      ...(process.env as Record<string, string>),
      ASSENT_URL: listening.url,
      ASSENT_API_KEY: key,
      ASSENT_STATE: join(folder, "state"),
      MCP_RECORD: record,
      MCP_DESCRIPTIONS: descriptions,
    },
    record: () => lines().map((line) => JSON.parse(line) as { name: string }),
    describe: (name, description) => writeFileSync(descriptions, `${name} ${description}\n`),
    actions,
    waits: (n) => async () =>
      (await actions()).some(
        ({ status, params }) => status === "pending_approval" && (params as { n: number }).n === n,
      ),
    async decide(approve, reason) {
      const [waiting] = (await actions()).filter(({ status }) => status === "pending_approval");
      if (waiting === undefined) throw new Error("no action is pending approval");
      const { approval_token: token } = (
        await service.call("GET", `/v1/actions/${String(waiting["id"])}`, { key: service.admin })
      ).body;
      const { status } = await service.call("POST", `/v1/actions/${String(waiting["id"])}/approval`, {
        key: service.admin,
        body: { token, approve, ...(reason === undefined ? {} : { reason }) },
      });
      if (status !== 200) throw new Error(`the vote was rejected with status ${status}`);
    },
    async close() {
      await listening.stop();
      await service.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export interface Proxied {
  client: Client;
  transport: StdioClientTransport;
  /** Returns what the proxy wrote to standard error. */
  log(): string;
  close(): Promise<void>;
}

export interface ProxyOptions {
  flags?: string[];
  server?: readonly string[];
  client?: ClientOptions;
  env?: Record<string, string>;
  name?: string;
  /** Timeout of the client's handshake, in milliseconds. */
  patience?: number;
  /** Runtime of the proxy. Default: Node. */
  runtime?: RuntimeName;
  /** Called before the client connects. */
  prepare?(client: Client): void;
}

/** Starts `assent mcp proxy` over standard input and output, and connects an official client to it. */
export async function startStdioProxy(setup: Setup, options: ProxyOptions = {}): Promise<Proxied> {
  const { flags = ["--name", "notes"], server = SERVER, env = {} } = options;
  const words = ["mcp", "proxy", ...flags, ...(server.length === 0 ? [] : ["--", ...server])];
  const [command, args] = commandOf(options.runtime ?? "node", MAIN, words, ["-A"]);
  const transport = new StdioClientTransport({
    command,
    args,
    env: { ...setup.env, ...env },
    stderr: "pipe",
  });
  let log = "";
  transport.stderr?.on("data", (chunk: Buffer) => (log += chunk.toString()));
  const client = new Client({ name: options.name ?? "test", version: "1.0.0" }, options.client ?? {});
  options.prepare?.(client);
  try {
    await client.connect(transport, { timeout: options.patience ?? 60_000 });
  } catch (error) {
    throw new Error(`the client cannot connect: ${String(error)}\n${log}`, { cause: error });
  }
  return { client, transport, log: () => log, close: () => client.close() };
}

export type Answer = { id: unknown; result?: Record<string, unknown>; error?: { code: number; message: string } };

export interface RawClient {
  greeting: Record<string, unknown>;
  /** The reply to a request for the tools that was sent right after `initialize`. */
  earlyTools: Promise<Answer>;
  /** Sends a request and returns the response, which can be an error. */
  ask(method: string, params?: unknown): Promise<Answer>;
  /** Sends SIGTERM to the proxy while its input is open. Resolves to its exit code, or null if the signal killed it. */
  terminate(): Promise<number | null>;
  /** Ends the proxy's input. Resolves to the proxy's exit code, or null if a signal killed it. */
  close(): Promise<number | null>;
}

/**
 * Starts a proxy and a client of protocol 2025-11-25 that sends any message, including those that the official client
 * cannot send.
 */
export async function rawClient(setup: Setup, flags: string[], capabilities: unknown = {}): Promise<RawClient> {
  const child = spawn(process.execPath, [...ASSENT, "mcp", "proxy", ...flags, "--", ...SERVER], {
    env: setup.env,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const waiting = new Map<unknown, (answer: Answer) => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const answer = JSON.parse(line) as Answer;
    waiting.get(answer.id)?.(answer);
  });
  let last = 0;
  const ask = (method: string, params: unknown = {}): Promise<Answer> =>
    new Promise((resolve) => {
      waiting.set(++last, resolve);
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: last, method, params })}\n`);
    });
  const greeting = ask("initialize", {
    protocolVersion: "2025-11-25",
    capabilities,
    clientInfo: { name: "raw", version: "1" },
  });
  const earlyTools = ask("tools/list");
  const { result = {} } = await greeting;
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
  return {
    greeting: result,
    earlyTools,
    ask,
    async terminate() {
      const ended = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
      child.kill("SIGTERM");
      const code = await ended;
      child.stdin.destroy();
      return code;
    },
    async close() {
      const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
      child.stdin.end();
      return ended;
    },
  };
}

/** The result of a rejected call. */
export interface Refused {
  isError?: boolean;
  content: { text: string }[];
  structuredContent?: { status: string; action_id: string; retry_after: number | null; code: string };
  _meta?: Record<string, { status: string; code: string; action_id: string }>;
}

export interface ListeningProxy {
  url: string;
  log(): string;
  close(): Promise<void>;
}

/** Starts `assent mcp proxy` for clients that connect over HTTP. */
export async function startHttpProxy(
  setup: Setup,
  flags: string[],
  env: Record<string, string> = {},
  server: readonly string[] = SERVER,
  runtime: RuntimeName = "node",
): Promise<ListeningProxy> {
  const words = ["mcp", "proxy", ...flags, ...(server.length === 0 ? [] : ["--", ...server])];
  const [program, args] = commandOf(runtime, MAIN, words, ["-A"]);
  const child = spawn(program, args, { env: { ...setup.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let [out, log] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (log += chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  await Promise.race([
    until(
      () => `the proxy listens: ${log}`,
      () => out.includes("listening on"),
    ),
    ended.then(() => Promise.reject(new Error(`the proxy exited: ${log}`))),
  ]);
  return {
    url: /listening on (\S+)/.exec(out)?.[1] as string,
    log: () => log,
    async close() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
