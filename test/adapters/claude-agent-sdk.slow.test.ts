/**
 * The hooks, called as the SDK calls them according to its types. The SDK's package contains a program of 400 MB, which
 * is not started here.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assentHooks } from "../../clients/typescript/adapters/claude-agent-sdk.ts";
import { boundKey, clientOf } from "../support/assent-client.ts";
import { startService } from "../support/service.ts";
import { adapterTests, type Driver, type Refund } from "./matrix.ts";

let calls = 0;
adapterTests("Claude Agent SDK's hooks", false, async (): Promise<Driver<null>> => ({
  async begin(params, gate, run) {
    const { PreToolUse, PostToolUse, PostToolUseFailure } = assentHooks({
      ...gate,
      tool: () => ({ tool: "stripe", operation: "refund" }),
    });
    const tool_use_id = `toolu_${++calls}`;
    const input = { session_id: "s", tool_name: "mcp__stripe__refund", tool_input: params as unknown, tool_use_id };
    const how = { signal: new AbortController().signal };
    const [before] = PreToolUse;
    const answer = await before?.hooks[0]?.({ ...input, hook_event_name: "PreToolUse" }, tool_use_id, how);
    const { permissionDecision, permissionDecisionReason } = answer?.hookSpecificOutput ?? {};
    if (permissionDecision === "deny") return { state: null, told: permissionDecisionReason ?? "" };
    let told: string;
    try {
      told = run(params satisfies Refund);
    } catch (error) {
      const failure = { ...input, hook_event_name: "PostToolUseFailure", error: String(error) };
      await PostToolUseFailure[0]?.hooks[0]?.(failure, tool_use_id);
      throw error;
    }
    await PostToolUse[0]?.hooks[0]?.({ ...input, hook_event_name: "PostToolUse", tool_response: told }, tool_use_id);
    return { state: null, told };
  },
}));

test("Claude Agent SDK's hooks: missing arguments are not treated as empty ones", async () => {
  const service = await startService({
    policy: "policy: any\nrules:\n  - { name: all, tool: stripe, effect: allow }\n",
  });
  try {
    const assent = clientOf(service, { apiKey: await boundKey(service, "support-bot") });
    const [before] = assentHooks({ assent, tool: "stripe" }).PreToolUse;
    const how = { signal: new AbortController().signal };
    for (const tool_input of [undefined, null, "x", [1]]) {
      const input = { hook_event_name: "PreToolUse", tool_name: "refund", tool_input, tool_use_id: "t" };
      const answer = await before?.hooks[0]?.(input, "t", how);
      assert.equal(answer?.hookSpecificOutput?.permissionDecision, "deny", JSON.stringify(tool_input));
    }
    const { actions } = await assent.actionsPage({});
    assert.deepEqual(actions, [], "nothing was asked");
  } finally {
    await service.close();
  }
});
