/**
 * The reference servers and the client of the v1 line, installed on demand: through the proxy a client gets the same as
 * without it.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { CACHE } from "../../support/cache.ts";
import { ASSENT } from "../../support/process.ts";
import { setUp, type Refused, type Setup } from "../../support/mcp.ts";
import { until } from "../../support/wait.ts";

const PACKAGES = {
  "@modelcontextprotocol/sdk": "1.32.2",
  "@modelcontextprotocol/server-everything": "2026.8.31",
  "@modelcontextprotocol/server-filesystem": "2026.8.31",
};
const FOLDER = join(CACHE, `assent-mcp-${Object.values(PACKAGES).join("-")}`);

/** Why they cannot be installed; false if they are available. */
function install(): string | false {
  if (existsSync(FOLDER)) return false;
  const fresh = `${FOLDER}.${process.pid}`;
  try {
    mkdirSync(fresh, { recursive: true });
    writeFileSync(join(fresh, "package.json"), JSON.stringify({ private: true, dependencies: PACKAGES }));
    execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: fresh, stdio: "pipe" });
    renameSync(fresh, FOLDER);
    return false;
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    return `the reference servers cannot be installed here: ${String(error).slice(0, 300)}`;
  }
}

const POLICY = `policy: everything
rules:
  - { name: denied, tool: mcp.everything, operation: get-env, effect: deny }
  - { name: written, tool: mcp.filesystem, operation: write_file, effect: require_approval }
  - { name: the rest, tool: [mcp.everything, mcp.filesystem], effect: allow }
`;

/** The v1 line, whose types are not available here. */
interface OldClient {
  connect(transport: unknown): Promise<void>;
  close(): Promise<void>;
  getServerVersion(): unknown;
  getInstructions(): string | undefined;
  listTools(): Promise<{ tools: { name: string }[] }>;
  listPrompts(): Promise<unknown>;
  listResources(): Promise<{ resources: { uri: string }[] }>;
  listResourceTemplates(): Promise<unknown>;
  readResource(params: { uri: string }): Promise<{ contents: { text?: string }[] }>;
  getPrompt(params: { name: string; arguments?: Record<string, string> }): Promise<unknown>;
  complete(params: unknown): Promise<unknown>;
  experimental: {
    tasks: { callToolStream(params: object): AsyncIterable<{ type: string; result?: Refused }> };
  };
  callTool(
    params: { name: string; arguments: unknown },
    schema?: undefined,
    options?: { onprogress?(at: { progress: number }): void },
  ): Promise<Refused>;
}

const skip = install();
describe("the reference servers behind the proxy, with a client of the v1 line", { skip }, () => {
  let setup: Setup;
  const clients: OldClient[] = [];
  before(async () => {
    setup = await setUp(POLICY);
  });
  after(async () => {
    for (const client of clients) await client.close();
    await setup?.close();
  });

  async function connected(command: string, args: string[], capabilities: object = {}): Promise<OldClient> {
    const require = createRequire(join(FOLDER, "package.json"));
    const load = (path: string) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)).href);
    const [{ Client }, { StdioClientTransport }] = await Promise.all([
      load("client/index.js"),
      load("client/stdio.js"),
    ]);
    const client = new Client({ name: "v1", version: "1.0.0" }, { capabilities }) as OldClient;
    await client.connect(new StdioClientTransport({ command, args, env: setup.env, stderr: "ignore" }));
    clients.push(client);
    return client;
  }
  const server = (name: string, ...args: string[]): string[] => [
    process.execPath,
    join(FOLDER, "node_modules/@modelcontextprotocol", `server-${name}`, "dist/index.js"),
    ...args,
  ];
  const both = async (name: string, ...args: string[]): Promise<[OldClient, OldClient]> => {
    const [program, ...rest] = server(name, ...args);
    return [
      await connected(program as string, rest),
      await connected(process.execPath, [...ASSENT, "mcp", "proxy", "--wait", "0", "--", program as string, ...rest]),
    ];
  };

  test("everything: lists, results, resources, prompts and completion equal the server's", async () => {
    const [plain, proxied] = await both("everything", "stdio");
    const asked: ((client: OldClient) => Promise<unknown>)[] = [
      (client) => Promise.resolve([client.getServerVersion(), client.getInstructions()?.replace(/^Assent.*\n\n/, "")]),
      (client) => client.listTools(),
      (client) => client.listPrompts(),
      (client) => client.listResources(),
      (client) => client.listResourceTemplates(),
      (client) => client.callTool({ name: "echo", arguments: { message: "ä\u0000\u2028" } }),
      (client) => client.callTool({ name: "get-sum", arguments: { a: 0.1, b: 0.2 } }),
      (client) => client.callTool({ name: "get-sum", arguments: { a: "not a number" } }),
      (client) => client.callTool({ name: "get-tiny-image", arguments: {} }),
      (client) =>
        client.callTool({ name: "get-annotated-message", arguments: { messageType: "error", includeImage: true } }),
      (client) => client.callTool({ name: "get-structured-content", arguments: { location: "New York" } }),
      (client) => client.callTool({ name: "get-resource-links", arguments: { count: 3 } }),
      async (client) => client.readResource({ uri: (await client.listResources()).resources[0]?.uri as string }),
      (client) => client.getPrompt({ name: "simple-prompt" }),
      (client) => client.getPrompt({ name: "args-prompt", arguments: { city: "Berlin" } }),
      (client) =>
        client.complete({
          ref: { type: "ref/prompt", name: "completable-prompt" },
          argument: { name: "department", value: "E" },
        }),
    ];
    for (const ask of asked) {
      const outcome = (client: OldClient): Promise<unknown> => ask(client).catch((error: Error) => error.message);
      assert.deepEqual(await outcome(proxied), await outcome(plain), String(ask));
    }
    const seen: number[] = [];
    const params = { name: "trigger-long-running-operation", arguments: { duration: 1, steps: 4 } };
    await proxied.callTool(params, undefined, { onprogress: ({ progress }) => void seen.push(progress) });
    // That client drops progress that arrives in one chunk with the result.
    assert.deepEqual(seen.slice(0, 3), [1, 2, 3]);
    assert.equal((await proxied.callTool({ name: "get-env", arguments: {} })).structuredContent?.status, "denied");
  });

  test("everything: a tool that only runs as a task, and one without approval, run as tasks", async () => {
    const [program, ...rest] = server("everything", "stdio");
    const client = await connected(
      process.execPath,
      [...ASSENT, "mcp", "proxy", "--wait", "0", "--", program as string, ...rest],
      { tasks: { list: {}, cancel: {}, requests: { elicitation: { create: {} }, sampling: { createMessage: {} } } } },
    );
    await client.listTools();
    for (const [name, given, said] of [
      ["simulate-research-query", { topic: "tea" }, /tea/],
      ["echo", { message: "hello" }, /hello/],
      ["get-env", {}, /denied/],
    ] as const) {
      const messages: { type: string; result?: Refused }[] = [];
      for await (const each of client.experimental.tasks.callToolStream({ name, arguments: given }))
        messages.push(each);
      assert.equal(messages[0]?.type, "taskCreated", name);
      assert.match(messages.at(-1)?.result?.content[0]?.text ?? JSON.stringify(messages), said);
    }
  });

  test("filesystem: a file is read, and written once after a person approved it", async () => {
    const folder = join(setup.folder, "files");
    mkdirSync(folder);
    writeFileSync(join(folder, "a.txt"), "hello");
    const [plain, proxied] = await both("filesystem", folder);
    assert.deepEqual(await proxied.listTools(), await plain.listTools());
    const read = { name: "read_text_file", arguments: { path: join(folder, "a.txt") } };
    assert.deepEqual(await proxied.callTool(read), await plain.callTool(read));
    const write = { name: "write_file", arguments: { path: join(folder, "b.txt"), content: "new" } };
    const waits = await proxied.callTool(write);
    assert.equal(waits.isError, true);
    assert.equal(waits._meta?.["assent/refusal"]?.status, "pending_approval");
    assert.ok(!existsSync(join(folder, "b.txt")));
    await setup.decide(true);
    assert.equal((await proxied.callTool(write)).isError, undefined);
    await until("the file is there", () => existsSync(join(folder, "b.txt")));
  });
});
