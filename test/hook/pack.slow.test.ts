/** The pack for coding agents is tested only with actions as the hook builds them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { toCanonicalAction } from "../../src/hook/action/canonical-action.ts";
import { checkPolicyFolder } from "../../src/policies/folder.ts";
import { ROOT } from "../support/process.ts";

test("the pack's cases contain the commands as the hook parses them", async () => {
  const folder = await checkPolicyFolder(join(ROOT, "policies", "packs"));
  const cases = folder.tests
    .filter(({ file }) => file === "coding-agents_test.yaml")
    .flatMap(({ test: one }) => one.cases);
  const commands = cases.filter(({ action: { tool, params } }) => tool === "shell" && params?.["parsed"] !== undefined);
  assert.ok(commands.length > 20);
  for (const { action } of commands) {
    const params = action.params as { command: string; cwd: string; workspace: string };
    const environment = { cwd: params.cwd, home: "/home/ada", project: params.workspace, codexProgram: null };
    const event = {
      host: "claude-code" as const,
      kind: "before" as const,
      session: null,
      callId: null,
      tool: "Bash",
      input: { command: params.command },
      cwd: params.cwd,
      workspace: params.workspace,
      success: true,
      outcomeReported: false,
    };
    assert.deepEqual((await toCanonicalAction(event, "coder", environment)).request.params, params, params.command);
  }
});
