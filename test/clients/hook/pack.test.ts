/** The pack for coding agents is tested only with actions as the hook builds them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { ActionRequest } from "../../../src/domain/actions.ts";
import { buildPolicySet, compilePolicySet } from "../../../src/domain/policy/compile/compile.ts";
import { decide } from "../../../src/domain/policy/decide/decide.ts";
import { toCanonicalAction } from "../../../clients/hook/action/canonical-action.ts";
import { checkPolicyFolder } from "../../../src/policies/folder.ts";
import { FACTS, NOW } from "../../support/policy.ts";
import { ROOT } from "../../support/process.ts";

test("the pack's cases contain the commands as the hook parses them", async () => {
  const folder = await checkPolicyFolder(join(ROOT, "policies", "packs"));
  const cases = folder.tests
    .filter(({ file }) => file === "coding-agents_test.yaml")
    .flatMap(({ test: one }) => one.cases);
  const commands = cases.filter(({ action: { tool, params } }) => tool === "shell" && params?.["parsed"] !== undefined);
  assert.ok(commands.length > 20);
  for (const { action } of commands) {
    const params = action.params as { command: string; cwd: string; workspace: string };
    assert.deepEqual((await requestOf(params)).params, params, params.command);
  }
});

test("the pack allows everyday commands with as many files as the hook lists", async () => {
  const { documents } = await checkPolicyFolder(join(ROOT, "policies", "packs"));
  const set = compilePolicySet(
    buildPolicySet(
      documents
        .filter(({ document }) => document.policy === "coding-agents")
        .map(({ document }) => ({ policy: document.policy, version: 1, definition: document })),
    ),
  );
  const workspace = "/home/ada/projects/storefront-monorepo";
  for (const command of ["cat", "git add", "npx prettier --write", "npx eslint --fix"])
    for (const count of [13, 16, 60, 120]) {
      const files = Array.from({ length: count }, (_, i) => `packages/checkout/src/components/step-${i}/form.tsx`);
      const request = await requestOf({ command: `${command} ${files.join(" ")}`, cwd: workspace, workspace });
      const { effect, rule, reason } = decide(set, request, FACTS, NOW);
      assert.deepEqual([effect, rule], ["allow", "everyday commands"], `${command} with ${count} files: ${reason}`);
    }
});

async function requestOf({ command, cwd, workspace }: Record<"command" | "cwd" | "workspace", string>) {
  const environment = { cwd, home: "/home/ada", project: workspace, codexProgram: null };
  const event = {
    host: "claude-code" as const,
    kind: "before" as const,
    session: null,
    callId: null,
    tool: "Bash",
    input: { command },
    cwd,
    workspace,
    success: true,
    outcomeReported: false,
  };
  const { request } = await toCanonicalAction(event, "coder", environment);
  return { ...request, context: request.context ?? {}, params: request.params ?? {} } as ActionRequest;
}
