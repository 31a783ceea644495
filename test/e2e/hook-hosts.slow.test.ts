/**
 * Runs coding agents from the npm registry offline. A fake model on loopback requests commands, and the hook,
 * configured by `install`, lets a service decide whether they run.
 * @needs hook
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { settingsFile, addHook } from "../../clients/hook/install/host-settings.ts";
import { runProgram, writeFiles, type Run } from "../support/cli.ts";
import { CODING_AGENTS, installAgent, textsOf, withoutAgent } from "../support/coding-agents.ts";
import { approveNext, HOOK, startHookService, type HookService } from "../support/hook.ts";
import { until } from "../support/wait.ts";
import { startModel, type Model, type ModelCall } from "../support/models.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// Installed concurrently, because they are large downloads.
const installed = CODING_AGENTS.map((agent) => (withoutAgent(agent) === false ? installAgent(agent) : null));
for (const each of installed) each?.catch(() => undefined);

for (const [i, real] of CODING_AGENTS.entries())
  describe(`${real.host}, ${real.spec}`, { skip: withoutAgent(real) }, () => {
    let command: [string, string[]] | null = null;
    let why = "";
    let hooks: HookService;
    before(async () => {
      hooks = await startHookService();
      try {
        command = (await installed[i]) ?? null;
      } catch (error) {
        why = `${real.spec} cannot be installed or does not run here: ${String(error).slice(0, 200)}`;
      }
    });
    after(() => hooks.close());

    /** Returns the results of the commands that the model received, and the lines that the commands wrote. */
    async function session(
      commands: (folder: string) => (string | ModelCall)[],
      env: Record<string, string> = {},
      options = "",
      during: (model: Model, folder: string) => Promise<unknown> = () => Promise.resolve(),
      { ownArgs = real.args, files = {} }: { ownArgs?: string[]; files?: Record<string, unknown> } = {},
    ): Promise<{ results: string[]; ran: string[]; run: Run }> {
      const folder = temporaryFolder("assent-host-");
      const home = join(folder, "home");
      const model = await startModel(
        real.model,
        commands(folder).map((each) => (typeof each === "string" ? real.shell(each) : each)),
      );
      try {
        writeFiles(home, textsOf({ ...real.files(model.url), ...files }));
        const place = { home, project: folder };
        const file = settingsFile(real.host, "user", place) as string;
        const line = [process.execPath, ...HOOK].map((word) => JSON.stringify(word)).join(" ");
        const settings = addHook(existsSync(file) ? readFileSync(file, "utf8") : null, {
          host: real.host,
          command: line,
          promptEvents: true,
        });
        const flag = `--host ${real.host}`;
        writeFiles("/", { [file.slice(1)]: settings.replaceAll(flag, `${flag}${options}`) });
        const [name, args] = command as [string, string[]];
        const [run] = await Promise.all([
          runProgram(name, [...args, ...ownArgs], {
            cwd: folder,
            env: { ...hooks.env, HOME: home, ...real.env(model.url), ...env },
          }),
          during(model, folder),
        ]);
        const ran = existsSync(join(folder, "ran")) ? readFileSync(join(folder, "ran"), "utf8").trim().split("\n") : [];
        return { results: [...model.results], ran, run };
      } finally {
        model.close();
        rmSync(folder, { recursive: true, force: true });
      }
    }
    const note = (word: string) => (folder: string) => [`echo ${word} >> ${folder}/ran`];

    test("a denied command does not run, an allowed one does, and one that is approved while it is held runs once", async (t) => {
      if (command === null) return t.skip(why);
      const { ran, results, run } = await session(
        (folder) => ["denied", "allowed", "asked"].flatMap((word) => note(word)(folder)),
        {},
        "",
        () => approveNext(hooks),
      );
      const about = JSON.stringify({ results, run });
      assert.deepEqual(ran, ["allowed", "asked"], about);
      assert.match(results[0] ?? "", /denied by policy: not this one/, about);
      const { body } = await hooks.service.call("GET", "/v1/actions?limit=3", { key: hooks.service.admin });
      const [asked, allowed, denied] = body.actions;
      assert.equal(allowed.tool, "shell");
      // These hosts give a call no id, so the hook cannot report that the call has ended.
      const ended = real.host === "gemini" || real.host === "copilot" ? "executing" : "succeeded";
      assert.deepEqual([denied.status, allowed.status, asked.status], ["denied", ended, ended]);
    });
    if (real.host === "claude-code")
      test("the hook's allow replaces the host's question, but not a deny rule of the host", async (t) => {
        if (command === null) return t.skip(why);
        const { ran, results } = await session(
          (folder) => ["allowed", "asked", "locked"].flatMap((word) => note(word)(folder)),
          {},
          "",
          () => approveNext(hooks),
          // Without "--allowedTools", Claude Code refuses these commands, because it can ask no one.
          {
            ownArgs: ["-p", "go"],
            files: { ".claude/settings.json": { permissions: { deny: ["Bash(echo locked:*)"] } } },
          },
        );
        assert.deepEqual(ran, ["allowed", "asked"], JSON.stringify(results));
      });
    if (real.host === "codex")
      test("if the version of Codex can be determined, the folder of a command is known, however it was chosen", async (t) => {
        if (command === null) return t.skip(why);
        const { results } = await session(() => [
          { name: "exec_command", input: { cmd: "ls allowed", yield_time_ms: 20_000 } },
          { name: "exec_command", input: { cmd: "ls allowed", workdir: "/etc", yield_time_ms: 20_000 } },
        ]);
        const { body } = await hooks.service.call("GET", "/v1/actions?limit=2", { key: hooks.service.admin });
        const [elsewhere, here] = body.actions.map(({ params }: { params: Record<string, unknown> }) => params);
        assert.deepEqual(
          here.parsed.unclear,
          process.platform === "linux" ? [] : ["directory"],
          JSON.stringify(results),
        );
        assert.match(here.cwd, /assent-host-/);
        assert.equal(elsewhere.cwd, "/etc");
        assert.deepEqual(elsewhere.parsed.paths, ["/etc/allowed"]);
      });
    test("a command that was not approved in time runs once when it is repeated after the approval", async (t) => {
      if (command === null) return t.skip(why);
      const { ran, results } = await session(
        (folder) => {
          const asked = `echo asked >> ${folder}/ran`;
          return [asked, `until [ -e ${folder}/approved ]; do sleep 0.1; done; : allowed`, asked, asked];
        },
        {},
        " --wait 2",
        // Approved while the second command runs. The third command repeats the first, and the fourth finds that the
        // approval is already used.
        async (model, folder) => {
          await until("the first command is answered", () => model.results.length > 0);
          await approveNext(hooks);
          writeFileSync(join(folder, "approved"), "");
        },
      );
      assert.match(results[0] ?? "", /waits for approval .*repeat the same command/);
      assert.deepEqual(ran, ["asked"], JSON.stringify(results));
      assert.match(results.at(-1) ?? "", /waits for approval .*repeat the same command/);
    });
    test("no command runs while the service is unreachable or the hook is misconfigured", async (t) => {
      if (command === null) return t.skip(why);
      // The hook reports an invalid key like the first of these failures; test/e2e/hook-matrix tests it.
      const sessions = await Promise.all([
        session(note("allowed"), { ASSENT_URL: "http://127.0.0.1:1" }),
        session(note("allowed"), {}, " --strange"),
      ]);
      for (const { ran, results } of sessions) assert.deepEqual(ran, [], JSON.stringify(results));
    });
  });
