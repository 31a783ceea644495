/** What the page about an agent calls typical for its parameters. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { findTypicalParameters } from "../../../../plugins/agents/page/typical-parameters.ts";

const refund = (params: Record<string, unknown>) => ({ tool: "stripe", operation: "refund", params });

it("typical parameters are ranges of numbers and the most frequent values, for each kind of action", () => {
  const refunds = Array.from({ length: 20 }, (_, i) =>
    refund({
      amount: i + 1,
      currency: i < 18 ? "USD" : "EUR",
      order: `ord-${i}`,
      customer: { country: "DE", address: { city: { name: "deeper than three levels" } } },
      ...(i === 0 ? { note: "late" } : {}),
    }),
  );
  const [first, second] = findTypicalParameters([
    { tool: "crm", operation: "note", params: { mixed: 1 } },
    ...refunds,
    { tool: "crm", operation: "note", params: { mixed: "one" } },
  ]);
  assert.deepEqual([first?.tool, first?.count, second?.tool, second?.count], ["stripe", 20, "crm", 2]);
  assert.deepEqual(first?.members, [
    { kind: "number", name: "amount", count: 20, low: 1, middle: 10, high: 19 },
    {
      kind: "text",
      name: "currency",
      count: 20,
      values: [
        { text: "USD", count: 18 },
        { text: "EUR", count: 2 },
      ],
      distinct: 2,
    },
    { kind: "text", name: "order", count: 20, values: [], distinct: 20 },
    { kind: "text", name: "customer.country", count: 20, values: [{ text: "DE", count: 20 }], distinct: 1 },
    { kind: "text", name: "note", count: 1, values: [{ text: "late", count: 1 }], distinct: 1 },
  ]);
  // A member that is not always a number has no range.
  assert.deepEqual(second?.members, [{ kind: "text", name: "mixed", count: 2, values: [], distinct: 2 }]);
});
