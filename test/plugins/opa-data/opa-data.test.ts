/** OPA's data API in front of the gate. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import opaData from "../../../plugins/opa-data/index.ts";
import { ALLOWED, approve, ASKED, DENIED, startService, type Answer, type Service } from "../../support/service.ts";

describe("OPA's data API", () => {
  let service: Service;
  before(async () => {
    service = await startService({
      plugins: [{ plugin: opaData, options: { enabled: true, tool: "stripe" }, origin: "opa-data" }],
    });
  });
  after(() => service.close());
  const ask = (input: unknown, path = "agent/call/decision"): Promise<Answer> =>
    service.call("POST", `/v1/data/${path}`, { body: { input, unknown: 1 } });

  it("allows once what policy allows, after its start is recorded", async () => {
    for (const input of [
      ALLOWED,
      { tool: { name: "refund" }, args: ALLOWED.params, messages: [], agent_id: "support-bot" },
    ]) {
      const { status, body } = await ask(input);
      assert.deepEqual([status, body.result.decision, body.result.allow], [200, "allow", true], JSON.stringify(body));
      const action = await service.call("GET", `/v1/actions/${body.result.action_id}`);
      assert.deepEqual(
        [action.body.status, action.body.tool, action.body.operation],
        ["executing", "stripe", "refund"],
      );
    }
    assert.deepEqual((await ask(ALLOWED, "agent/allow")).body, { result: true });
    // OPA reads both as one path: an object instead of "false" reads as true.
    for (const path of ["agent/allow", "agent/allow/", "agent/%61llow", "agent/allow?pretty=true"])
      assert.deepEqual((await ask(DENIED, path)).body, { result: false }, path);
  });

  it("has a result for /allow and /decision only, so that no client reads a denial as an allow", async () => {
    const toolCall = { tool: { name: "refund" }, args: DENIED.params, agent_id: "support-bot" };
    for (const path of ["agent/call/decision", "decision", "decision/", "agent/%64ecision"])
      for (const input of [DENIED, toolCall])
        assert.equal((await ask(input, path)).body.result.decision, "deny", `${path} ${JSON.stringify(input)}`);
    for (const path of [
      "agent",
      "agent/",
      "agent/call",
      "agent/allowed",
      "agent/is_allowed",
      "agent/permit",
      "agent/Allow",
      "agent/deny",
      "agent/violation",
      "agent/allow/reason",
      "agent/decision/allow%20",
      "agent/allow%00",
      "agent/allow%2",
      "agent/allow/..",
      "allow;x",
    ])
      for (const input of [ALLOWED, DENIED, ASKED, toolCall]) {
        const { status, body } = await ask(input, path);
        assert.deepEqual([status, "result" in body], [400, false], `${path} ${JSON.stringify(input)}`);
        assert.match(body.message, /the path must end in/);
      }
    for (const path of ["", "/", "?allow", "?path=agent/allow"])
      assert.equal((await service.call("POST", `/v1/data${path}`, { body: { input: DENIED } })).status, 400, path);
    // The AI SDK reads false as no objection.
    const { status, body } = await ask(toolCall, "agent/allow");
    assert.deepEqual([status, "result" in body], [400, false]);
  });

  it("decides on the context, in both forms", async () => {
    for (const input of [
      { ...ALLOWED, context: { ticket: 7 } },
      { tool: { name: "refund" }, args: ALLOWED.params, context: { ticket: 7 }, runtimeContext: { role: "a" } },
    ]) {
      const { body } = await ask(input);
      const action = await service.call("GET", `/v1/actions/${body.result.action_id}`);
      assert.deepEqual(action.body.context, { ticket: 7 });
    }
  });

  it("returns false while an approval is pending, and true once after the approval", async () => {
    const waits = await ask(ASKED);
    assert.deepEqual([waits.body.result.decision, waits.body.result.allow], ["deny", false]);
    assert.match(waits.body.result.reason, /waits for approval/);
    assert.equal((await ask(ASKED)).body.result.action_id, waits.body.result.action_id);
    await approve(service, waits.body.result.action_id);
    assert.equal((await ask(ASKED)).body.result.allow, true);
    assert.equal((await ask(ASKED)).body.result.allow, false);
  });

  it("returns no result for unreadable requests and unauthorised callers", async () => {
    for (const input of [
      undefined,
      null,
      [],
      "x",
      {},
      { tool: "stripe" },
      { tool: {}, args: {} },
      { tool: { name: "refund" }, args: [1] },
      { tool: { name: "refund" }, arguments: { amount: 1 } },
      { tool: "stripe", operation: "refund", args: { amount: 1 } },
      { ...ALLOWED, arguments: { amount: 1_000_000 } },
      { ...ALLOWED, agent_id: 5 },
      { tool: { name: "refund" }, args: ALLOWED.params, agent_id: null },
      { tool: { name: "refund" }, args: ALLOWED.params, params: { amount: 5000 } },
      { tool: { name: "refund" }, args: ALLOWED.params, operation: "transfer" },
      { tool: { name: "refund" }, args: ALLOWED.params, context: "x" },
      { tool: { name: "refund" }, args: ALLOWED.params, context: null },
      { tool: { name: "refund" }, args: ALLOWED.params, input: { amount: 5000 } },
      { tool: { name: "refund", args: { amount: 5000 } }, args: ALLOWED.params },
      { tool: ["stripe"], operation: "refund" },
    ]) {
      const { status, body } = await ask(input);
      assert.deepEqual([status, "result" in body], [400, false], JSON.stringify(input));
    }
    for (const raw of ["{", "", '{"input":{"tool":"crm","tool":"stripe","operation":"refund"}}'])
      assert.equal((await service.call("POST", "/v1/data/x", { raw })).status, 400);
    const { status, body } = await service.call("POST", "/v1/data/x", { key: null, body: { input: ALLOWED } });
    assert.deepEqual([status, "result" in body], [401, false]);
    assert.equal((await ask({ ...ALLOWED, agent_id: "hid\u200bden" })).status, 422);
  });
});
