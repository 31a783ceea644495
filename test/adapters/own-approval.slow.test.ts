/** A tool's own approval by the application's user is still required, in addition to the service's decision. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { governTools } from "../../src/adapters/ai-sdk.ts";
import { governTool } from "../../src/adapters/openai-agents.ts";
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
});
