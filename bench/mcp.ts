/**
 * Measures what `assent mcp proxy` adds to a call over standard input and output. The calls go to a server that
 * responds at once: without the proxy, through the proxy with a method that needs no decision, and through the proxy
 * with a tool call that is decided. The requests for the decision are also measured separately. The variants alternate,
 * so that their differences are meaningful on a busy machine.
 *
 *   npm run bench:mcp [-- CALLS]
 */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createAssent } from "../clients/typescript/index.ts";

const CALLS = Number(process.argv[2] ?? 2_000);
/** Calls of one variant before the next variant. */
const TURN = 50;

const SERVER = `
const tools = [{ name: "echo", inputSchema: { type: "object" } }];
const greeting = { protocolVersion: "2025-11-25", capabilities: { tools: {}, resources: {} }, serverInfo: { name: "echo", version: "1" } };
const answers = {
  initialize: greeting, "tools/list": { tools }, "tools/call": { content: [{ type: "text", text: "hello" }] },
  "resources/read": { contents: [{ uri: "a:b", text: "hello" }] },
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] ?? {} }) + "\\n");
});`;

const folder = mkdtempSync(join(tmpdir(), "assent-bench-mcp-"));
const children: ChildProcess[] = [];

function start(command: string, args: string[], env: Record<string, string> = {}): ChildProcess {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  return child;
}

/** Creates a client that waits for each response. */
function client({ stdin, stdout }: ChildProcess): (method: string, params: object) => Promise<number> {
  let last = 0;
  let answered = (): void => {};
  createInterface({ input: stdout as NonNullable<typeof stdout> }).on("line", (line) => {
    const { id, error, result } = JSON.parse(line) as { id?: number; error?: unknown; result?: { isError?: boolean } };
    if (error !== undefined || result?.isError === true) throw new Error(line);
    if (id === last) answered();
  });
  return async (method, params) => {
    const begun = performance.now();
    await new Promise<void>((resolve) => {
      answered = resolve;
      stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id: ++last, method, params })}\n`);
    });
    return performance.now() - begun;
  };
}

try {
  const [data, policies] = [join(folder, "data"), join(folder, "policies")];
  for (const path of [data, policies]) mkdirSync(path);
  writeFileSync(
    join(policies, "bench.yaml"),
    "policy: bench\nrules:\n  - { name: all, tool: mcp.echo, effect: allow }\n",
  );
  const service = start(process.execPath, ["--import", "tsx", "bench/service.ts", data, policies]);
  const { url, key } = await new Promise<{ url: string; key: string }>((resolve) => {
    service.stdout?.once("data", (chunk: Buffer) =>
      resolve(JSON.parse(chunk.toString()) as { url: string; key: string }),
    );
  });
  const script = join(folder, "echo.cjs");
  const config = join(folder, "assent-mcp.yaml");
  writeFileSync(script, SERVER);
  writeFileSync(
    config,
    `agent: bench\ndata: ${folder}\nservers:\n  echo: { command: ${process.execPath}, args: [${script}], open: [resources/read] }\n`,
  );
  const plain = client(start(process.execPath, [script]));
  const proxied = client(
    start(process.execPath, ["src/cli/assent.mjs", "mcp", "proxy", "--config", config], {
      ASSENT_URL: url,
      ASSENT_API_KEY: key,
    }),
  );
  const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bench", version: "1" } };
  for (const ask of [plain, proxied]) await ask("initialize", hello);

  const assent = createAssent({ url, apiKey: key });
  /**
   * Sends the proxy's requests to the service around one call: the submission before it, and the report after it, which
   * overlaps with the next call as in the proxy.
   */
  async function decision(): Promise<number> {
    const begun = performance.now();
    const request = { agent_id: "bench", tool: "mcp.echo", operation: "echo", params: { n: Math.random() } };
    const { id } = await assent.submit(request, { join: true });
    await assent.start(id);
    const ms = performance.now() - begun;
    void assent.result(id, { success: true });
    return ms;
  }
  const kinds = {
    "the decision alone": decision,
    "without the proxy": () => plain("resources/read", { uri: "a:b" }),
    "through it, not decided": () => proxied("resources/read", { uri: "a:b" }),
    "through it, decided": () => proxied("tools/call", { name: "echo", arguments: { n: Math.random() } }),
  };
  const times = new Map<string, number[]>(Object.keys(kinds).map((kind) => [kind, []]));
  for (let round = -4; round < CALLS / TURN; round++)
    for (const [kind, ask] of Object.entries(kinds))
      for (let i = 0; i < TURN; i++) {
        const ms = await ask();
        if (round >= 0) times.get(kind)?.push(ms);
      }
  const at = (all: number[], share: number): string =>
    (all.sort((a, b) => a - b)[Math.floor(all.length * share)] as number).toFixed(2);
  process.stdout.write("| call | p50 ms | p95 ms |\n|---|---|---|\n");
  for (const [kind, all] of times) process.stdout.write(`| ${kind} | ${at(all, 0.5)} | ${at(all, 0.95)} |\n`);
} finally {
  const ends = children.map((child) => new Promise((resolve) => child.once("close", resolve)));
  for (const child of children) child.kill();
  await Promise.all(ends);
  rmSync(folder, { recursive: true, force: true });
}
