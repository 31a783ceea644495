/**
 * Coding agents themselves, from the registry, offline: a model of our own on loopback asks for commands, and the hook,
 * in the settings that `install` writes, decides with a real service whether they run.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import type { Host } from "../../src/hook/hosts/answers.ts";
import { settingsFile, withHook } from "../../src/hook/install/settings.ts";
import { program, write, type Run } from "../support/cli.ts";
import { approveNext, HOOK, startHookService, type HookService } from "../support/hook.ts";
import { until } from "../support/wait.ts";
import { startModel, type Model, type ModelDialect } from "../support/models.ts";

interface RealHost {
  host: Host;
  spec: string;
  model: ModelDialect;
  /** From the folder of its package: what is started. */
  program(folder: string): [program: string, args: string[]];
  args: string[];
  /** Other settings that it needs. */
  files(url: string): Record<string, string>;
  env(url: string): Record<string, string>;
}

const HOSTS: readonly RealHost[] = [
  {
    host: "claude-code",
    spec: "@anthropic-ai/claude-code@2.1.330",
    model: "messages",
    program: (folder) => [join(folder, `@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`), []],
    args: ["-p", "go", "--allowedTools", "Bash"],
    files: () => ({}),
    env: (url) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    }),
  },
  {
    host: "codex",
    spec: "@openai/codex@0.169.0",
    model: "responses",
    program: (folder) => [process.execPath, [join(folder, "@openai/codex/bin/codex.js")]],
    // A person trusts a hook once; here nobody is there to.
    args: ["exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "-s", "danger-full-access", "go"],
    files: (url) => ({
      ".codex/config.toml": `model = "m"\nmodel_provider = "own"\n[model_providers.own]\nname = "own"\nbase_url = "${url}/v1"\nwire_api = "responses"\n`,
    }),
    env: () => ({}),
  },
  {
    host: "gemini",
    spec: "@google/gemini-cli@0.61.0",
    model: "contents",
    program: (folder) => [process.execPath, [join(folder, "@google/gemini-cli/bundle/gemini.js")]],
    args: ["-p", "go", "--yolo", "--skip-trust", "-m", "gemini-2.5-pro"],
    files: () => ({
      ".gemini/settings.json": JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" } },
        general: { disableAutoUpdate: true },
        privacy: { usageStatisticsEnabled: false },
      }),
    }),
    env: (url) => ({ GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: url }),
  },
];

/** Kept between runs: they are large. */
async function installed({ spec, program: of }: RealHost): Promise<[string, string[]]> {
  const folder = join(tmpdir(), `assent-test-${spec.replaceAll(/[^a-z0-9.]+/g, "-")}`);
  const [name, args] = of(join(folder, "node_modules"));
  if (![name, ...args].every((path) => existsSync(path))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), "{}");
    await promisify(execFile)("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", spec], {
      cwd: folder,
      timeout: 240_000,
    });
  }
  await promisify(execFile)(name, [...args, "--version"], { timeout: 60_000 });
  return [name, args];
}

for (const real of HOSTS)
  describe(`${real.host}, ${real.spec}`, () => {
    let command: [string, string[]] | null = null;
    let why = "";
    let hooks: HookService;
    before(async () => {
      hooks = await startHookService();
      try {
        command = await installed(real);
      } catch (error) {
        why = `${real.spec} cannot be installed or does not run here: ${String(error).slice(0, 200)}`;
      }
    });
    after(() => hooks.close());

    /** What the model was told of each command, and the lines that the commands wrote. */
    async function session(
      commands: (folder: string) => string[],
      env: Record<string, string> = {},
      options = "",
      during: (model: Model) => Promise<unknown> = () => Promise.resolve(),
    ): Promise<{ results: string[]; ran: string[]; run: Run }> {
      const folder = mkdtempSync(join(tmpdir(), "assent-host-"));
      const home = join(folder, "home");
      const model = await startModel(real.model, commands(folder));
      try {
        write(home, real.files(model.url));
        const place = { home, project: folder };
        const file = settingsFile(real.host, "user", place) as string;
        const line = [process.execPath, ...HOOK].map((word) => JSON.stringify(word)).join(" ");
        const settings = withHook(existsSync(file) ? readFileSync(file, "utf8") : null, {
          host: real.host,
          command: line,
        });
        const flag = `--host ${real.host}`;
        write("/", { [file.slice(1)]: settings.replaceAll(flag, `${flag}${options}`) });
        const [name, args] = command as [string, string[]];
        const [run] = await Promise.all([
          program(name, [...args, ...real.args], {
            cwd: folder,
            env: { ...hooks.env, HOME: home, ...real.env(model.url), ...env },
          }),
          during(model),
        ]);
        const ran = existsSync(join(folder, "ran")) ? readFileSync(join(folder, "ran"), "utf8").trim().split("\n") : [];
        return { results: [...model.results], ran, run };
      } finally {
        model.close();
        rmSync(folder, { recursive: true, force: true });
      }
    }
    const note = (word: string) => (folder: string) => [`echo ${word} >> ${folder}/ran`];

    test("an allowed command runs", async (t) => {
      if (command === null) return t.skip(why);
      const { ran, results, run } = await session(note("allowed"));
      assert.deepEqual(ran, ["allowed"], JSON.stringify({ results, run }));
      const { body } = await hooks.service.call("GET", "/v1/actions?limit=1", { key: hooks.service.admin });
      assert.equal(body.actions[0].tool, "shell");
      // Gemini gives a call no id, so that its end is not told.
      assert.equal(body.actions[0].status, real.host === "gemini" ? "executing" : "succeeded");
    });
    test("a denied command does not run, and the model is told why", async (t) => {
      if (command === null) return t.skip(why);
      const { ran, results } = await session(note("denied"));
      assert.deepEqual(ran, []);
      assert.match(results[0] ?? "", /denied by policy: not this one/);
    });
    test("a command that is approved while it is held runs once", async (t) => {
      if (command === null) return t.skip(why);
      const approved = approveNext(hooks);
      const { ran, results } = await session(note("asked"));
      assert.deepEqual(ran, ["asked"], JSON.stringify(results));
      await approved;
    });
    test("a command that was not approved in time runs when it is repeated after the approval, and not a second time", async (t) => {
      if (command === null) return t.skip(why);
      const { ran, results } = await session(
        (folder) => {
          const asked = `echo asked >> ${folder}/ran`;
          return [asked, "sleep 4; : allowed", asked, asked];
        },
        {},
        " --wait 2",
        // Approved while the second command runs: the third is the first again, and the fourth finds the approval used up.
        async (model) => {
          await until("the first command is answered", () => model.results.length > 0);
          await approveNext(hooks);
        },
      );
      assert.match(results[0] ?? "", /waits for approval .*repeat the same command/);
      assert.deepEqual(ran, ["asked"], JSON.stringify(results));
      assert.match(results.at(-1) ?? "", /waits for approval .*repeat the same command/);
    });
    test("no command runs while the service is away, its key is not taken, or the hook is started wrongly", async (t) => {
      if (command === null) return t.skip(why);
      assert.deepEqual((await session(note("allowed"), { ASSENT_URL: "http://127.0.0.1:1" })).ran, []);
      assert.deepEqual((await session(note("allowed"), { ASSENT_API_KEY: "ask_wrong" })).ran, []);
      assert.deepEqual((await session(note("allowed"), {}, " --strange")).ran, []);
    });
  });
