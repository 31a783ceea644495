/**
 * Runs coding agents offline, with an MCP server behind `assent mcp proxy` in their settings.
 * @needs hook
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { runProgram, writeFiles } from "../support/cli.ts";
import { CODING_AGENTS, installAgent, textsOf, withoutAgent } from "../support/coding-agents.ts";
import { POLICY, SERVER, setUp, type Setup } from "../support/mcp.ts";
import { startModel } from "../support/models.ts";
import { ASSENT } from "../support/process.ts";
import { until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

for (const agent of CODING_AGENTS)
  describe(`${agent.spec} with a server behind the proxy`, { skip: withoutAgent(agent) }, () => {
    let setup: Setup;
    before(async () => {
      setup = await setUp(POLICY);
    });
    after(() => setup?.close());

    test("a denied call does not run, an allowed one does, and one that is approved while it waits runs once", async (t) => {
      let command: [string, string[]];
      try {
        command = await installAgent(agent);
      } catch (error) {
        return t.skip(`${agent.spec} cannot be installed or does not run here: ${String(error).slice(0, 200)}`);
      }
      const folder = temporaryFolder("assent-host-");
      const calls = [agent.tool("forbidden", {}), agent.tool("write", { n: 1 }), agent.tool("write", { n: 100 })];
      const model = await startModel(agent.model, calls);
      try {
        const { ASSENT_URL = "", ASSENT_API_KEY = "", MCP_RECORD = "", ASSENT_STATE = "" } = setup.env;
        const notes = {
          command: process.execPath,
          args: [...ASSENT, "mcp", "proxy", "--name", "notes", "--", ...SERVER],
          env: { ASSENT_URL, ASSENT_API_KEY, ASSENT_STATE, MCP_RECORD },
        };
        const home = join(folder, "home");
        const { files, args = [] } = agent.mcp(notes, model.url);
        writeFiles(home, textsOf({ ...agent.files(model.url), ...files }));
        const [name, before] = command;
        let over = false;
        const waits = async (): Promise<boolean> =>
          (await setup.actions()).some(({ status }) => status === "pending_approval");
        const approved = until("a call waits", async () => over || (await waits())).then(() =>
          over ? undefined : setup.decide(true),
        );
        approved.catch(() => undefined);
        const run = await runProgram(name, [...before, ...agent.args, ...args], {
          cwd: folder,
          env: { HOME: home, ...agent.env(model.url) },
        });
        over = true;
        const about = JSON.stringify({ results: model.results, tools: model.tools, run });
        assert.match(model.results[0] ?? "", /denied/, about);
        assert.equal(model.results.length, 3, about);
        await approved;
        assert.deepEqual(
          setup.record().map(({ given }) => given),
          [{ n: 1 }, { n: 100 }],
          about,
        );
        const actions = (await setup.actions()).map(({ status, params }) => [status, params]);
        assert.deepEqual(actions.reverse(), [
          ["denied", {}],
          ["succeeded", { n: 1 }],
          ["succeeded", { n: 100 }],
        ]);
      } finally {
        model.close();
        rmSync(folder, { recursive: true, force: true });
      }
    });
  });
