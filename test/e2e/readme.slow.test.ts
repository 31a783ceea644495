/** Runs the README's commands as a new user would: the service by its start command, and the tour in a shell. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createAssent, govern } from "../../clients/typescript/index.ts";
import { assent } from "../support/cli.ts";
import { runHook } from "../support/hook.ts";
import { POLICIES } from "../support/service.ts";
import { eventually } from "../support/wait.ts";
import { ASSENT, ROOT, startProcess, stopProcess } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const readme = readFileSync(join(ROOT, "README.md"), "utf8");

test("the two commands are the ones that package.json and CI know", () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  assert.match(readme, /^npm ci && npm start$/m);
  assert.match(readme, /^npm test$/m);
  assert.match(scripts["test"] ?? "", /^node test\/run\.mjs --check fast$/);
  assert.match(scripts["check"] ?? "", /^node test\/tools\/install\.mjs && /);
  assert.match(scripts["start"] ?? "", /src\/cli\/assent\.mjs serve$/);
  const ci = readFileSync(join(ROOT, ".ci/run"), "utf8");
  assert.deepEqual(
    [...ci.matchAll(/^(?:\w+=\S+ )?(npm [^|\n]*?)(?: \|.*)?$/gm)].map(([, command]) => command),
    [
      "npm ci --workspaces --include-workspace-root --no-audit --no-fund",
      "npm test",
      "npm run --silent test:rest",
      "npm run --silent test:without -- --today",
    ],
  );
});

test("every page that the README names exists", () => {
  for (const [, path] of readme.matchAll(/\]\(([^)#]+)\)/g))
    assert.ok(readFileSync(join(ROOT, path as string)).length > 200, path);
});

test("the tour works, line by line", async () => {
  const data = temporaryFolder("assent-tour-");
  const service = await startProcess({
    ASSENT_DATA: join(data, "store"),
    ASSENT_POLICIES: POLICIES,
    ASSENT_AGENTS: "",
  });
  try {
    const shown = (name: string): string => new RegExp(`export ${name}=(\\S+)`).exec(service.output())?.[1] ?? "";
    const blocks = [...readme.matchAll(/<!-- tour -->\n```sh\n([\s\S]*?)```/g)].map((match) => match[1] as string);
    assert.ok(blocks.length === 8);
    // The tour runs in a separate folder, with links to the parts of the clone that it uses.
    for (const name of ["src", "clients", "node_modules", "package.json", "policies", ".ci"])
      symlinkSync(join(ROOT, name), join(data, name));
    const script = `set -eu\n${blocks.map((block, i) => `echo "== ${i}"\n${block}`).join("\n")}`;
    const env = {
      ...process.env,
      ASSENT_URL: shown("ASSENT_URL"),
      ADMIN_KEY: shown("ADMIN_KEY"),
      AGENT_KEY: shown("AGENT_KEY"),
    };
    const run = await runShell("sh", script, data, env);
    assert.equal(run.code, 0, run.output);
    const said = run.output.split(/== \d+\n/).slice(1);
    // The output of each step that the page prints. "…" matches anything.
    const prints = [...readme.matchAll(/<!-- (tour|prints) -->\n```\w+\n([\s\S]*?)```/g)];
    let step = -1;
    let compared = 0;
    for (const [, kind, words = ""] of prints) {
      if (kind === "tour") {
        step++;
        continue;
      }
      const pattern = words
        .trim()
        .split("…")
        .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
        .join("[\\s\\S]*");
      assert.match(said[step]?.trim() ?? "", new RegExp(`^${pattern}$`));
      compared++;
    }
    assert.equal(compared, blocks.length - 1);
    const again = await runShell("sh", script, data, env);
    assert.notEqual(again.code, 0, "the second run fails, because the policy exists");
    assert.match(again.output, /POLICY_NAME_TAKEN/);
    assert.deepEqual(
      readdirSync(data).sort(),
      [".ci", "clients", "node_modules", "package.json", "policies", "src", "store"],
      "the tour leaves nothing behind",
    );
  } finally {
    await stopProcess(service);
    rmSync(data, { recursive: true, force: true });
  }
});

/** Has three tools of the reference server for files, and answers each call with its name. */
const FILE_SERVER = `
const { createInterface } = require("node:readline");
const tools = ["read_text_file", "write_file", "chmod"].map((name) => ({ name, inputSchema: { type: "object" } }));
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const result =
    method === "initialize"
      ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "files", version: "1" } }
      : method === "tools/list"
        ? { tools }
        : { content: [{ type: "text", text: "ran " + params?.name }] };
  if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
});`;

test("each way in leads from the start command to an allowed, an asked and a denied call, in any order", async () => {
  const folder = temporaryFolder("assent-ways-");
  const env = { ASSENT_DATA: join(folder, "store"), ASSENT_POLICIES: POLICIES, ASSENT_AGENTS: "" };
  const service = await startProcess(env);
  try {
    const shown = (name: string): string => new RegExp(`export ${name}=(\\S+)`).exec(service.output())?.[1] ?? "";
    const [adminKey, agentKey] = [shown("ADMIN_KEY"), shown("AGENT_KEY")];
    const admin = createAssent({ url: service.url, apiKey: adminKey });
    /** Approves the pending action of this tool with the admin key. */
    const approve = async (tool: string): Promise<void> => {
      const action = await eventually(
        async () => (await admin.actionsPage({ status: "pending_approval" })).actions.find((one) => one.tool === tool),
        () => `no action of ${tool} is pending`,
      );
      await admin.vote(action.id, true);
    };
    const whileApproving = async <T>(call: Promise<T>, tool: string): Promise<T> =>
      (await Promise.all([call, approve(tool)]))[0];

    const ways = {
      async client() {
        const agent = createAssent({ url: service.url, apiKey: agentKey });
        const refund = govern(async ({ amount }: { amount: number; currency: string }) => amount, {
          tool: "stripe",
          operation: "refund",
          assent: agent,
        });
        assert.equal(await refund({ amount: 50, currency: "USD" }), 50);
        assert.equal(await whileApproving(refund({ amount: 500, currency: "USD" }), "stripe"), 500);
        await assert.rejects(refund({ amount: 50_000, currency: "USD" }), /excessive refunds|20,000/);
      },
      async proxy() {
        const command = [...ASSENT, "mcp", "proxy", "--name", "filesystem", "--", process.execPath, "-e", FILE_SERVER];
        const variables = { ...process.env, ASSENT_URL: service.url, ASSENT_API_KEY: agentKey, HOME: folder };
        const proxy = spawn(process.execPath, command, {
          env: variables,
          cwd: folder,
          stdio: ["pipe", "pipe", "inherit"],
        });
        let output = "";
        proxy.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
        const request = (id: number, method: string, params: object): Promise<string> => {
          proxy.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
          const find = (): string | undefined =>
            output.split("\n").find((line) => line.endsWith("}") && (JSON.parse(line) as { id?: number }).id === id);
          return eventually(
            () => Promise.resolve(find()),
            () => `no answer to ${method}: ${output}`,
          );
        };
        const call = (id: number, name: string): Promise<string> =>
          request(id, "tools/call", { name, arguments: { path: "/home/me/notes/plan.md" } });
        try {
          const clientInfo = { name: "test", version: "1" };
          await request(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
          proxy.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
          assert.match(await request(2, "tools/list", {}), /read_text_file.*write_file.*chmod/);
          assert.match(await call(3, "read_text_file"), /ran read_text_file/);
          assert.match(await whileApproving(call(4, "write_file"), "mcp.filesystem"), /ran write_file/);
          assert.match(await call(5, "chmod"), /not made.*this policy does not list the operation/);
        } finally {
          proxy.stdin.end();
          await once(proxy, "close");
        }
      },
      async hook() {
        const project = join(folder, "project");
        if (!existsSync(project)) {
          // git tracks the files of an ordinary project, except those with secrets.
          mkdirSync(project);
          writeFileSync(join(project, ".env"), "STRIPE_KEY=sk_live_1\n");
          spawnSync("git", ["init", "--quiet", project]);
        }
        const home = { ...process.env, HOME: folder, XDG_CONFIG_HOME: "", XDG_DATA_HOME: "", ASSENT_HOOKD: "off" };
        const variables = { ...home, ASSENT_URL: service.url, ASSENT_API_KEY: adminKey };
        const done = await assent(["hook", "setup", "--host", "claude-code"], { cwd: folder, env: variables });
        assert.equal(done.code, 0, done.out + done.err);
        const bash = (command: string) =>
          runHook(
            "claude-code",
            JSON.stringify({
              session_id: "s",
              cwd: project,
              tool_use_id: randomUUID(),
              hook_event_name: "PreToolUse",
              tool_name: "Bash",
              tool_input: { command },
            }),
            { ...home, ASSENT_URL: "", ASSENT_API_KEY: "", CLAUDE_PROJECT_DIR: project },
          );
        assert.match((await bash("git status")).out, /"permissionDecision":"allow".*everyday commands/);
        assert.match((await whileApproving(bash("git push origin main"), "shell")).out, /"permissionDecision":"allow"/);
        assert.match((await bash("cat .env")).out, /"deny".*secret/);
      },
    };
    for (const way of [ways.client, ways.proxy, ways.hook, ways.hook, ways.proxy, ways.client]) await way();
  } finally {
    await stopProcess(service);
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the start command prints keys once, and only once", async () => {
  const data = temporaryFolder("assent-start-");
  try {
    const first = await startProcess({ ASSENT_DATA: data, ASSENT_POLICIES: POLICIES, ASSENT_AGENTS: "" });
    assert.equal([...first.output().matchAll(/assent_[\w-]{51}/g)].length, 2);
    const [, key] = /export ADMIN_KEY=(\S+)/.exec(first.output()) ?? [];
    const [, command] = /the command asks for the key:\s+(.+)/.exec(first.output()) ?? [];
    const shown = await runShell("bash", command ?? "false", ROOT, {
      ...process.env,
      ASSENT_URL: first.url,
      ASSENT_API_KEY: key ?? "",
    });
    assert.equal(shown.code, 0, shown.output);
    assert.equal(await stopProcess(first), 0);
    const second = await startProcess({ ASSENT_DATA: data, ASSENT_POLICIES: POLICIES, ASSENT_AGENTS: "" });
    assert.ok(!second.output().includes("assent_"));
    assert.equal(await stopProcess(second, "SIGINT"), 0);
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
});

test("the demo's checks pass, which its exit code reports", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...ASSENT, "demo"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr + stdout);
  assert.match(stdout, /all checks passed\n$/);
  const [, actions, verified, replayed] =
    /(\d+) actions:[\s\S]*?(\d+) proofs verified[\s\S]*?(\d+) decisions replayed/.exec(stdout) ?? [];
  assert.ok(Number(actions) >= 40);
  assert.deepEqual([verified, replayed], [actions, actions]);
  assert.ok(
    !stdout.includes("\u001b") && !stdout.includes("\u202e"),
    "no colours and no marks of the actions' own on a pipe",
  );
});

function runShell(
  shell: string,
  script: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(shell, ["-c", script], { cwd, env });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.once("close", (code) => resolve({ code, output }));
  });
}
