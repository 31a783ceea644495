/**
 * Claude Code itself, from the registry, offline: a model of our own on loopback asks for commands, and the hook decides
 * with a real service whether they run.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { withHook } from "../../src/hook/install/settings.ts";
import { program, type Run } from "../support/cli.ts";
import { approveNext, HOOK, startHookService, type HookService } from "../support/hook.ts";

const VERSION = "2.1.330";
const POLICY = `
policy: test
rules:
  - { name: denied, tool: shell, when: params.command.contains("denied"), effect: deny, reason: not this one }
  - { name: asked, tool: shell, when: params.command.contains("asked"), effect: require_approval, reason: somebody looks }
  - { name: allowed, tool: shell, effect: allow }
`;

/** Kept between runs: it is large. */
async function installed(): Promise<string> {
  const folder = join(tmpdir(), `assent-test-claude-code-${VERSION}`);
  const binary = join(folder, `node_modules/@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`);
  if (!existsSync(binary)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), "{}");
    await promisify(execFile)(
      "npm",
      ["install", "--ignore-scripts", "--no-audit", "--no-fund", `@anthropic-ai/claude-code@${VERSION}`],
      {
        cwd: folder,
        timeout: 240_000,
      },
    );
  }
  await promisify(execFile)(binary, ["--version"], { timeout: 60_000 });
  return binary;
}

/** Speaks the messages API: asks for one command after the other, then ends. */
function model(commands: readonly string[], results: string[]): Promise<Server> {
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      if (!request.url?.startsWith("/v1/messages") || request.url.includes("count_tokens")) {
        response.setHeader("content-type", "application/json");
        response.end('{"input_tokens":1}');
        return;
      }
      const body = JSON.parse(text) as { stream?: boolean; tools?: unknown[]; messages: { content: unknown }[] };
      const blocks = body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : [])) as Record<
        string,
        unknown
      >[];
      const answers = blocks.filter(({ type }) => type === "tool_result");
      results.splice(0, Infinity, ...answers.map(({ content }) => JSON.stringify(content)));
      const command = (body.tools ?? []).length > 0 ? commands[answers.length] : undefined;
      const id = `toolu_${process.pid}_${answers.length}`;
      const block =
        command === undefined ? { type: "text", text: "" } : { type: "tool_use", id, name: "Bash", input: {} };
      const delta =
        command === undefined
          ? { type: "text_delta", text: "done" }
          : { type: "input_json_delta", partial_json: JSON.stringify({ command, description: "a step" }) };
      const message = {
        id: `msg_${id}`,
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        stop_reason: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      };
      response.setHeader("content-type", "text/event-stream");
      const send = (type: string, data: object): void =>
        void response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
      send("message_start", { message });
      send("content_block_start", { index: 0, content_block: block });
      send("content_block_delta", { index: 0, delta });
      send("content_block_stop", { index: 0 });
      send("message_delta", {
        delta: { stop_reason: command === undefined ? "end_turn" : "tool_use" },
        usage: { output_tokens: 1 },
      });
      send("message_stop", {});
      response.end();
    });
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

describe("Claude Code", () => {
  let binary: string | null = null;
  let why = "";
  let hooks: HookService;
  before(async () => {
    hooks = await startHookService(POLICY);
    try {
      binary = await installed();
    } catch (error) {
      why = `Claude Code cannot be installed or does not run here: ${String(error).slice(0, 200)}`;
    }
  });
  after(() => hooks.close());

  /** What the model was told of each command, and the lines that the commands wrote. */
  async function session(
    commands: (folder: string) => string[],
    env: Record<string, string> = {},
    options: string[] = [],
  ): Promise<{ results: string[]; ran: string[]; run: Run }> {
    const folder = mkdtempSync(join(tmpdir(), "assent-claude-"));
    const results: string[] = [];
    const server = await model(commands(folder), results);
    try {
      const line = [process.execPath, ...HOOK].map((word) => JSON.stringify(word)).join(" ");
      const settings = JSON.parse(withHook(null, { host: "claude-code", command: line })) as {
        hooks: Record<string, { hooks: { command: string }[] }[]>;
      };
      for (const { hooks: list } of settings.hooks["PreToolUse"] ?? [])
        for (const one of list) one.command += options.map((option) => ` ${option}`).join("");
      const file = join(folder, "settings.json");
      writeFileSync(file, JSON.stringify(settings));
      const run = await program(binary as string, ["-p", "go", "--settings", file, "--allowedTools", "Bash"], {
        cwd: folder,
        env: {
          ...hooks.env,
          HOME: join(folder, "home"),
          ANTHROPIC_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
          ANTHROPIC_API_KEY: "none",
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          ...env,
        },
      });
      const ran = existsSync(join(folder, "ran")) ? readFileSync(join(folder, "ran"), "utf8").trim().split("\n") : [];
      return { results, ran, run };
    } finally {
      server.close();
      rmSync(folder, { recursive: true, force: true });
    }
  }
  const note = (word: string) => (folder: string) => [`echo ${word} >> ${folder}/ran`];

  test("an allowed command runs, and its end is in the record", async (t) => {
    if (binary === null) return t.skip(why);
    const { ran, results, run } = await session(note("allowed"));
    assert.deepEqual(ran, ["allowed"], JSON.stringify({ results, run }));
    const { body } = await hooks.service.call("GET", "/v1/actions?limit=1", { key: hooks.service.admin });
    assert.equal(body.actions[0].status, "succeeded");
    assert.equal(body.actions[0].tool, "shell");
  });
  test("a denied command does not run, and the model is told why", async (t) => {
    if (binary === null) return t.skip(why);
    const { ran, results } = await session(note("denied"));
    assert.deepEqual(ran, []);
    assert.match(results[0] ?? "", /denied by policy: not this one/);
  });
  test("a command that is approved while it is held runs once", async (t) => {
    if (binary === null) return t.skip(why);
    const approved = approveNext(hooks);
    const { ran, results } = await session(note("asked"));
    assert.deepEqual(ran, ["asked"], JSON.stringify(results));
    const { body } = await hooks.service.call("GET", `/v1/actions/${await approved}`, { key: hooks.service.admin });
    assert.equal(body.status, "succeeded");
  });
  test("a command that was not approved in time runs when it is repeated after the approval, and not a second time", async (t) => {
    if (binary === null) return t.skip(why);
    // Approved while the second command runs: the third is the first again, and the fourth finds the approval used up.
    const approved = approveNext(hooks);
    const { ran, results } = await session(
      (folder) => {
        const asked = `echo asked >> ${folder}/ran`;
        return [asked, "sleep 3; : allowed", asked, asked];
      },
      {},
      ["--wait", "2"],
    );
    await approved;
    assert.deepEqual(ran, ["asked"], JSON.stringify(results));
    assert.match(results.at(-1) ?? "", /waits for approval .*repeat the same command/);
  });
  test("no command runs while the service is away, its key is not taken, or the hook is started wrongly", async (t) => {
    if (binary === null) return t.skip(why);
    assert.deepEqual((await session(note("allowed"), { ASSENT_URL: "http://127.0.0.1:1" })).ran, []);
    assert.deepEqual((await session(note("allowed"), { ASSENT_API_KEY: "ask_wrong" })).ran, []);
    assert.deepEqual((await session(note("allowed"), {}, ["--strange"])).ran, []);
  });
});
