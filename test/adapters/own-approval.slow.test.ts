/** A tool's own approval by the application's user is still required, in addition to the service's decision. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { cancelDenied, governTools } from "../../clients/typescript/adapters/ai-sdk.ts";
import { governTool } from "../../clients/typescript/adapters/openai-agents.ts";
import { boundKey, clientOf } from "../support/assent-client.ts";
import { startService, type Service } from "../support/service.ts";

const ALLOWED = { amount: 5, currency: "USD" };

describe("a tool's own needsApproval", () => {
  let service: Service;
  let gate: { tool: string; assent: ReturnType<typeof clientOf> };
  before(async () => {
    service = await startService();
    gate = { tool: "stripe", assent: clientOf(service, { apiKey: await boundKey(service, "support-bot") }) };
  });
  after(() => service.close());
  const execute = (): string => "done";

  for (const [own, needed] of [
    [true, true],
    [() => true, true],
    [({ amount }: typeof ALLOWED) => amount > 4, true],
    [false, false],
    [undefined, false],
    [() => Promise.resolve(false), false],
  ] as const)
    test(`${String(own)}: ${needed ? "asked" : "not asked"} for a call that policy allows`, async () => {
      const { refund } = governTools({ refund: { execute, needsApproval: own as unknown } }, gate);
      const asks = refund.needsApproval as unknown as (input: unknown, how: unknown) => Promise<boolean>;
      assert.equal(await asks(ALLOWED, { toolCallId: "c-1" }), needed);
      const swapped = typeof own === "function" ? (_context: unknown, input: typeof ALLOWED) => own(input) : own;
      const tool = governTool({ name: "refund", execute, needsApproval: swapped as unknown }, gate);
      const asksToo = tool.needsApproval as unknown as (context: unknown, input: unknown) => Promise<boolean>;
      assert.equal(await asksToo({}, ALLOWED), needed);
    });

  test("the action of a call that the application's user denied is cancelled, once, and no other action", async () => {
    const policy = "policy: ask\nrules:\n  - { name: ask, tool: stripe, effect: require_approval }\n";
    const asking = await startService({ policy });
    const options = { tool: "stripe", assent: clientOf(asking, { apiKey: await boundKey(asking, "support-bot") }) };
    const { refund } = governTools(
      { refund: { execute } as { execute: typeof execute; needsApproval?: unknown } },
      options,
    );
    const asks = refund.needsApproval as (input: unknown, how: unknown) => Promise<boolean>;
    const inputs = { "c-1": { amount: 1 }, "c-2": { amount: 2 }, "c-3": { amount: 3 } };
    for (const [toolCallId, input] of Object.entries(inputs)) assert.equal(await asks(input, { toolCallId }), true);
    const answers = [
      { approvalId: "a-c-1", approved: false, reason: "too early" },
      { approvalId: "a-c-2", approved: true },
      { approvalId: "unknown", approved: false },
    ];
    const messages = [
      { role: "user", content: "refund" },
      {
        role: "assistant",
        content: Object.entries(inputs).flatMap(([toolCallId, input]) => [
          { type: "tool-call", toolCallId, toolName: "refund", input },
          { type: "tool-approval-request", approvalId: `a-${toolCallId}`, toolCallId },
        ]),
      },
      { role: "tool", content: answers.map((answer) => ({ type: "tool-approval-response", ...answer })) },
    ];
    const [cancelled, ...others] = await cancelDenied(messages, options);
    assert.deepEqual([cancelled?.status, cancelled?.params, others], ["cancelled", { amount: 1 }, []]);
    assert.deepEqual(await cancelDenied(messages, options), []);
    const pending = await options.assent.actionsPage({ status: "pending_approval" });
    assert.deepEqual(
      pending.actions.map(({ params }) => params),
      [{ amount: 3 }, { amount: 2 }],
    );
    await asking.close();
  });
});
