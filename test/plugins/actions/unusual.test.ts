/** What approvers see about a request in comparison with earlier requests of its agent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ComparedRequest,
  compareWithEarlier,
  MAX_DIFFERENCES,
  MAX_UNUSUAL_SENTENCES,
} from "../../../plugins/actions/unusual.ts";
import type { JsonObject } from "../../../src/domain/json.ts";

let count = 0;
const refund = (params: JsonObject, more: Partial<ComparedRequest> = {}): ComparedRequest => ({
  id: `a${++count}`,
  tool: "stripe",
  operation: "refund",
  params,
  context: {},
  ...more,
});

test("an agent without a history has no earlier request", () => {
  const { compared_with, unusual, differs_from } = compareWithEarlier(refund({}), []);
  assert.deepEqual([compared_with, unusual, differs_from], [0, ["No earlier request of this agent is known."], null]);
});

test("a tool and an operation that the agent did not use are named", () => {
  const earlier = [refund({}), refund({}, { tool: "mail" })];
  assert.deepEqual(compareWithEarlier(refund({}, { tool: 'x"y' }), earlier).unusual, [
    'The agent did not use the tool "x\\"y" in its last 2 requests.',
  ]);
  assert.deepEqual(compareWithEarlier(refund({}, { operation: "charge" }), earlier).unusual, [
    'The agent did not use the operation "charge" of this tool in its last 2 requests.',
  ]);
});

test("differences are those from the newest request with the same tool and operation", () => {
  const last = refund({ amount: 5, nested: { a: 1, "b/c": 2 }, gone: "x" }, { context: { ticket: "T-1" } });
  const earlier = [refund({ amount: 1 }, { tool: "mail" }), last, refund({ amount: 7 })];
  const now = refund({ amount: 6, nested: { a: 1, "b/c": 3 }, list: ["a"] }, { context: { ticket: "T-2" } });
  assert.deepEqual(compareWithEarlier(now, earlier).differs_from, {
    action_id: last.id,
    members: [
      { pointer: "/params/amount", before: 5, after: 6 },
      { pointer: "/params/nested/b~1c", before: 2, after: 3 },
      { pointer: "/params/list", before: null, after: ["a"] },
      { pointer: "/context/ticket", before: "T-1", after: "T-2" },
      { pointer: "/params/gone", before: "x", after: null },
    ],
  });
});

test("an amount is unusual only above the 99th percentile of earlier values, and the sentence says of how many", () => {
  const earlier = Array.from({ length: 200 }, (_, i) => refund({ amount: i + 1 }));
  assert.deepEqual(compareWithEarlier(refund({ amount: 198 }), earlier).unusual, []);
  assert.deepEqual(compareWithEarlier(refund({ amount: 199 }), earlier).unusual, [
    '"params.amount" 199 is above 198, the 99th percentile of 200 earlier values.',
  ]);
  assert.deepEqual(compareWithEarlier(refund({ amount: 900 }), earlier.slice(0, 4)).unusual, [], "too few");
  const texts = Array.from({ length: 10 }, () => refund({ amount: "10.50" }));
  assert.deepEqual(compareWithEarlier(refund({ amount: "900.00" }), texts).unusual, [
    '"params.amount" "900.00" is above 10.5, the 99th percentile of 10 earlier values.',
  ]);
});

test("numbers that identify or count something are not amounts", () => {
  const earlier = Array.from({ length: 10 }, (_, i) =>
    refund({ issue_number: i, order_id: i, order: 4709 - (i >> 1) }),
  );
  assert.deepEqual(compareWithEarlier(refund({ issue_number: 99, order_id: 99, order: 4711 }), earlier).unusual, []);
  const mixed = [5, 9, 3, 7, 4, 8].map((retries) => refund({ retries }));
  assert.equal(compareWithEarlier(refund({ retries: 40 }), mixed).unusual.length, 1);
});

test("a new recipient, order or text is unusual only if earlier values repeat", () => {
  const customers = ["a", "b", "c", "d", "e", "f"].map((name) =>
    refund({ to: `${name}@example.com`, cc: [`${name}@example.com`], customer: name, order: `o-${name}`, text: name }),
  );
  const unknown = refund({ to: "x@example.com", cc: ["y@example.com"], customer: "x", order: "o-x", text: "new" });
  assert.deepEqual(compareWithEarlier(unknown, customers).unusual, []);
  const suppliers = ["a", "b", "a", "b"].map((name) => refund({ to: name, cc: [name], order: `o-${Math.random()}` }));
  assert.deepEqual(compareWithEarlier(refund({ to: "a", cc: ["a", "b"], order: "o-x" }), suppliers).unusual, []);
  assert.deepEqual(compareWithEarlier(refund({ to: "x", cc: ["a", "y"], order: "o-x" }), suppliers).unusual, [
    '"params.to" "x" is new among 4 earlier values.',
    '"params.cc" "y" is new among 4 earlier values.',
  ]);
});

test("a value is unusual if earlier requests repeat theirs, and a new member is unusual, too", () => {
  const earlier = Array.from({ length: 10 }, (_, i) => refund({ currency: i < 5 ? "EUR" : "USD", dry_run: true }));
  assert.deepEqual(compareWithEarlier(refund({ currency: "BTC", dry_run: false, force: true }), earlier).unusual, [
    '"params.currency" "BTC" is new among 10 earlier values.',
    '"params.dry_run" false is new among 10 earlier values.',
    '"params.force" is new: none of 10 similar requests had it.',
  ]);
});

test("a value is unusual among few earlier requests, and if earlier requests rarely had it", () => {
  const deploy = (environment: string): ComparedRequest => refund({ environment });
  const staging = (count: number): ComparedRequest[] => Array.from({ length: count }, () => deploy("staging"));
  const compare = (earlier: readonly ComparedRequest[]): string[] =>
    compareWithEarlier(deploy("production"), earlier).unusual;
  assert.deepEqual(compare(staging(2)), []);
  assert.deepEqual(compare(staging(3)), ['"params.environment" "production" is new among 3 earlier values.']);
  const once = [...staging(5), deploy("production")];
  assert.deepEqual(compare(once), ['"params.environment" "production" is rare: 1 of 6 earlier values.']);
  const often = [...staging(5), ...Array.from({ length: 3 }, () => deploy("production"))];
  assert.deepEqual(compare(often), []);
});

test("values and members cannot inject text, and the lists and values are bounded", () => {
  const earlier = Array.from({ length: 10 }, () => refund({ to: "a" }));
  const [hidden] = compareWithEarlier(refund({ to: "b\u202e\n" }), earlier).unusual;
  assert.ok(!/[\u202e\n]/.test(hidden as string), hidden);
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`m${i}\u202e`, "x".repeat(5000)]));
  const { unusual, differs_from } = compareWithEarlier(refund(many), earlier);
  assert.equal(unusual.length, MAX_UNUSUAL_SENTENCES);
  assert.ok(unusual.every((line) => !line.includes("\u202e")));
  assert.equal(differs_from?.members.length, MAX_DIFFERENCES);
  assert.ok(differs_from?.members.every(({ after }) => typeof after === "string" && after.length < 400));
});

test("a list of more than 100 items is one value, so that hostile lists cost no more than their bytes", () => {
  const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `n${i}`);
  const same = (count: number): ComparedRequest[] => Array.from({ length: 6 }, () => refund({ to: names(count) }));
  assert.deepEqual(compareWithEarlier(refund({ to: names(100).reverse() }), same(100)).unusual, []);
  assert.equal(compareWithEarlier(refund({ to: names(101).reverse() }), same(101)).unusual.length, 1);
  assert.deepEqual(compareWithEarlier(refund({ to: names(101) }), same(101)).unusual, []);
  // Item by item, these would be 30,000 times 1.5 million comparisons.
  const hostile = Array.from({ length: 50 }, (_, i) => refund({ to: Array(30_000).fill(i % 5) }));
  const { unusual } = compareWithEarlier(refund({ to: names(30_000) }), hostile);
  assert.equal(unusual.length, 1);
  assert.ok((unusual[0] as string).length < 400, unusual[0]);
});

test("a negative amount is unusual if no earlier amount was negative", () => {
  const earlier = [5, 0, 7].map((amount) => refund({ amount }));
  const unusualOf = (amount: number): string[] => compareWithEarlier(refund({ amount }), earlier).unusual;
  assert.deepEqual(unusualOf(-5), ['"params.amount" -5 is below zero, unlike 3 earlier values.']);
  assert.deepEqual(unusualOf(3), []);
  assert.deepEqual(compareWithEarlier(refund({ amount: -5 }), [refund({ amount: -1 }), ...earlier]).unusual, []);
});
