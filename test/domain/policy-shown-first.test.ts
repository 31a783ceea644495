/** The members of a request that approvers see first, according to the policy. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildPolicySet, compilePolicySet } from "../../src/domain/policy/compile/compile.ts";
import { parsePolicies } from "../../src/domain/policy/parse/parse.ts";
import { presentRequest, type DecidedAction } from "../../src/domain/policy/decide/request-presentation.ts";

const POLICY = `policy: pay
rules:
  - { name: small, tool: stripe, operation: refund, when: 'params.amount <= 100 && params["pay to"] in ["a"]', effect: allow }
  - { name: other tool, tool: bank, when: params.iban == "x", effect: allow }
  - { name: other operation, tool: stripe, operation: payout, when: params.bank == "x", effect: allow }
  - name: large
    tool: "str*"
    operation: Refund
    when: has(params.order.total) || params.items.exists(i, i.price > params.cap) || context["a/b"] == 1
    effect: require_approval
    approval: { show: [params.destination, 'params.order["net~total"]', params.amount] }
  - { name: rest, effect: require_approval }
limits:
  - { name: a day, tool: stripe, per: params.customer, sum: params.amount, at_most: 10, window: day, effect: require_approval }
  - { name: elsewhere, tool: bank, per: params.branch, count: 1, window: day }
`;
const set = compilePolicySet(
  buildPolicySet(
    parsePolicies(POLICY, "pay.yaml").documents.map((definition) => ({ policy: "pay", version: 1, definition })),
  ),
);
const shown = (over: Partial<DecidedAction>): string[] =>
  presentRequest(set, {
    agent_id: "bot",
    tool: "stripe",
    operation: "refund",
    policy: "pay",
    rule: "large",
    params: {},
    context: {},
    ...over,
  }).shown_first;

test("the rule's list comes first, then its condition's members, then the rules ahead of it, then limits", () => {
  assert.deepEqual(shown({ tool: "Stripe" }), [
    "/params/destination",
    "/params/order/net~0total",
    "/params/amount",
    "/params/order/total",
    "/params/items",
    "/params/cap",
    "/context/a~1b",
    "/params/pay to",
    "/params/customer",
  ]);
});

test("a rule without a condition shows the members that the rules ahead of it read", () => {
  assert.deepEqual(shown({ operation: "payout", rule: "rest" }), [
    "/params/bank",
    "/params/amount",
    "/params/customer",
  ]);
});

test("a limit that requires approval shows the members that it counts", () => {
  assert.deepEqual(shown({ operation: "charge", rule: "a day" }), ["/params/amount", "/params/customer"]);
});

test("nothing comes first if the active set has no such policy or rule", () => {
  assert.deepEqual(shown({ rule: "gone" }), []);
  assert.deepEqual(shown({ policy: "gone" }), []);
  assert.deepEqual(shown({ rule: null }), []);
});

test("approval.show accepts only paths into params and context", () => {
  for (const wrong of ["amount", "params", "agent", "params.", 'params["a', "params.a[0]"]) {
    const text = `policy: p\nrules:\n  - { name: r, effect: require_approval, approval: { show: ['${wrong}'] } }\n`;
    assert.equal(parsePolicies(text, "p.yaml").faults.length, 1, wrong);
  }
});
