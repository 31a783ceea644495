/** Named values (`let`): constants and derived values that the conditions of a policy read by name. */
import assert from "node:assert/strict";
import test from "node:test";
import { buildPolicySet, compilePolicySet, policySetDigest } from "../../src/domain/policy/compile/compile.ts";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import { explain } from "../../src/domain/policy/decide/explain.ts";
import { presentRequest } from "../../src/domain/policy/decide/request-presentation.ts";
import { diffPolicies } from "../../src/domain/policy/diff/diff.ts";
import { parsePolicies, validatePolicyDocument } from "../../src/domain/policy/parse/parse.ts";
import type { CompiledPolicySet } from "../../src/domain/policy/compile/compile.ts";
import type { Decision } from "../../src/domain/policy/policy-types.ts";
import type { JsonObject } from "../../src/domain/json.ts";

const FACTS = { principal: { key_id: "k", name: "n", agent_id: null, owner: null } };
const NOW = Date.parse("2026-01-15T10:00:00Z");

const REFUNDS = `policy: refunds
let:
  small: 100
  currencies: [USD, EUR]
  caps: { USD: 1000, EUR: 900 }
  gross: { cel: double(params.net) * tax }
  tax: { cel: "params.country == 'DE' ? 1.19 : 1.0" }
rules:
  - { name: small ones, tool: stripe, when: "gross <= small && params.currency in currencies", effect: allow }
  - { name: known caps, tool: stripe, when: "gross <= caps[params.currency]", effect: require_approval }
`;

function compile(text: string): CompiledPolicySet {
  const { documents, faults } = parsePolicies(text, "p.yaml");
  assert.deepEqual(faults, []);
  return compilePolicySet(
    buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
  );
}

const request = (params: JsonObject) => ({ agent_id: "a", tool: "stripe", operation: "refund", params, context: {} });
const run = (set: CompiledPolicySet, params: JsonObject): Decision => decide(set, request(params), FACTS, NOW);

/** Returns the faults of a policy with these lines under `let`, and this condition. */
function faultsOf(entries: string, when = "true"): string[] {
  const text = `policy: p\nlet:\n  ${entries}\nrules:\n  - { name: r, effect: allow, when: '${when}' }\n`;
  return parsePolicies(text, "p.yaml").faults.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

test("conditions read constants, lists, maps and derived values by name", () => {
  const set = compile(REFUNDS);
  const answer = (params: JsonObject) => {
    const { effect, rule, reason_code } = run(set, params);
    return [effect, rule, reason_code];
  };
  assert.deepEqual(answer({ net: 100, country: "US", currency: "USD" }), ["allow", "small ones", "POLICY_RULE"]);
  assert.deepEqual(answer({ net: 100, country: "DE", currency: "USD" }), [
    "require_approval",
    "known caps",
    "POLICY_RULE",
  ]);
  assert.deepEqual(answer({ net: 100, country: "DE", currency: "GBP" }), ["deny", "known caps", "CONDITION_ERROR"]);
  assert.deepEqual(answer({ net: 950, country: "US", currency: "EUR" }), ["deny", null, "NO_MATCHING_RULE"]);
});

test("a derived value that fails denies, and the reason names the missing field", () => {
  const { effect, reason_code, reason } = run(compile(REFUNDS), { net: 1, currency: "USD" });
  assert.deepEqual([effect, reason_code], ["deny", "CONDITION_ERROR"]);
  assert.match(reason, /there is no field "country"; test for it with has\(\)/);
});

test("a derived value that no condition reads is never evaluated", () => {
  const set = compile(
    "policy: p\nlet: { broken: { cel: params.nope } }\nrules: [{ name: r, when: params.x == 1, effect: allow }]\n",
  );
  assert.equal(run(set, { x: 1 }).effect, "allow");
});

test("the steps of a derived value are charged once for each request", () => {
  const elements = Array.from({ length: 90_000 }, () => 1);
  const policy = (uses: string) => `policy: p
let: { heavy: { cel: "params.list.exists(x, x == 2)" } }
rules: [{ name: r, when: '${uses}', effect: allow }]
`;
  const direct = "params.list.exists(x, x == 2)";
  assert.equal(run(compile(policy("!heavy && !heavy && !heavy")), { list: elements }).effect, "allow");
  assert.equal(
    run(compile(policy(`!${direct} && !${direct} && !${direct}`)), { list: elements }).reason_code,
    "CONDITION_LIMIT",
  );
  assert.equal(
    run(compile(policy("!heavy")), { list: Array.from({ length: 400_000 }, () => 1) }).reason_code,
    "CONDITION_LIMIT",
  );
});

test("a policy in shadow mode derives its values on its own steps", () => {
  const set = compile(`policy: enforced
rules: [{ name: r, effect: allow }]
---
policy: tried
mode: shadow
let: { heavy: { cel: "params.list.exists(x, x == 2)" } }
rules: [{ name: r, when: heavy, effect: allow }]
`);
  const { effect, shadow } = run(set, { list: Array.from({ length: 400_000 }, () => 1) });
  assert.equal(effect, "allow");
  assert.equal(shadow[0]?.reason_code, "CONDITION_LIMIT");
});

test("named values are part of the digest, and replay of an earlier set gives the earlier decision", () => {
  const [before, after] = [REFUNDS, REFUNDS.replace("small: 100", "small: 200")].map(compile);
  assert.notEqual(before?.digest, after?.digest);
  const params = { net: 150, country: "US", currency: "USD" };
  assert.equal(run(after as CompiledPolicySet, params).effect, "allow");
  // A stored set is canonical JSON, which sorts keys: the order of `let` has no meaning.
  const stored = JSON.parse(JSON.stringify(before?.document)) as CompiledPolicySet["document"];
  const names = stored.policies[0]?.definition.let as JsonObject;
  (stored.policies[0] as { definition: { let: JsonObject } }).definition.let = Object.fromEntries(
    Object.entries(names).reverse(),
  );
  assert.equal(policySetDigest(stored), before?.digest);
  assert.equal(run(compilePolicySet(stored), params).effect, "require_approval");
});

test("a limit counts anew when a named value that it adds up or counts per changes, and only then", () => {
  const basis = (entries: string) =>
    compile(`policy: p
let: ${entries}
rules: [{ name: r, effect: allow }]
limits: [{ name: l, sum: double(params.amount) * rate, at_most: 10, window: 1h }]
`).policies[0]?.limits[0]?.basis;
  assert.equal(basis("{ rate: 1.5, other: 1 }"), basis("{ rate: 1.5, other: 2 }"));
  assert.notEqual(basis("{ rate: 1.5 }"), basis("{ rate: 2.5 }"));
  assert.notEqual(basis("{ rate: { cel: base }, base: 1.5 }"), basis("{ rate: { cel: base }, base: 2.5 }"));
});

test("explanations show named values, and approvers see the members that they read", () => {
  const set = compile(REFUNDS);
  const action = request({ net: 100, country: "DE", currency: "USD", note: "x" });
  const parts = explain(set, action, FACTS, NOW).policies[0]?.rules[0]?.condition?.parts ?? [];
  const values = parts.map(({ expression, value }) => `${expression} = ${value ?? ""}`);
  assert.ok(values.includes("gross = 119.0"), values.join("\n"));
  assert.ok(values.includes("small = 100"), values.join("\n"));
  assert.deepEqual(presentRequest(set, { ...action, policy: "refunds", rule: "known caps" }).shown_first, [
    "/params/currency",
    "/params/net",
    "/params/country",
  ]);
});

test("a diff names each changed value", () => {
  const [before, after] = [REFUNDS, REFUNDS.replace("small: 100", "small: 200").replace("  currencies", "  sorts")].map(
    (text) => parsePolicies(text.replace(" && params.currency in currencies", ""), "p.yaml").documents[0],
  );
  assert.ok(before !== undefined && after !== undefined);
  assert.deepEqual(
    diffPolicies(before, after).map(({ summary }) => summary),
    [
      'the policy has another let.currencies: absent; it was ["USD","EUR"]; the policy has another let.small: 200; it was 100; ' +
        'the policy has another let.sorts: ["USD","EUR"]; it was absent',
    ],
  );
});

test("faults in named values have a position and say what to write", () => {
  const cases: [entries: string, when: string, fault: string][] = [
    ["small: 100", "params.amount <= smal", '5:55 rules.0.when: there is no variable "smal"; did you mean "small"?'],
    [
      'small: "100"',
      "small > 5",
      '5:42 rules.0.when: ">" cannot compare a string and an int; convert the text with int() or double()',
    ],
    ["caps: { usd: 5 }", "caps.eur > 5", '5:42 rules.0.when: caps has no field "eur"; its fields are usd'],
    ["sorts: [USD, EUR]", '"usd" in sorts', '5:42 rules.0.when: "usd" is a string, which sorts never contains'],
    ["now: 5", "true", '3:3 let.now: "now" is a variable of every condition; choose another name'],
    ["package: 5", "true", '3:3 let.package: "package" is a word of CEL or reserved; choose another name'],
    ["a-b: 5", "true", "3:3 let.a-b: a name has at most 64 letters, digits and underscores, such as small_refund"],
    [
      "sum: { cel: tool > 5 }",
      "sum",
      '3:18 let.sum.cel: ">" cannot compare a string and an int; convert the text with int() or double()',
    ],
    ["sum: { cel: params. }", "sum", '3:21 let.sum.cel: the expression cannot be read at "."'],
    [
      "sum: { cell: params.a }",
      "sum == 1",
      '3:8 let.sum: a derived value is an expression, such as { cel: "params.amount * 2.0" }; a constant has no member "cel"',
    ],
    [
      "a: { cel: b }\n  b: { cel: 1 + a }",
      "a == 1",
      "3:6 let.a: is defined by itself (a → b → a); derive it from the request or from other names",
    ],
    ["gross: { cel: params.net }", "gross", ""],
    [
      "gross: { cel: size(params) * 2 }",
      "gross",
      "5:38 rules.0.when: the expression is an int; it must be true or false",
    ],
  ];
  for (const [entries, when, fault] of cases) assert.deepEqual(faultsOf(entries, when), fault === "" ? [] : [fault]);
});

test("a policy that is sent as JSON has the same faults", () => {
  const document = { policy: "p", let: { now: 1 }, rules: [{ name: "r", effect: "allow" }] };
  assert.deepEqual(validatePolicyDocument(document), [
    {
      pointer: "/let/now",
      key: true,
      kind: "condition",
      detail: '"now" is a variable of every condition; choose another name',
    },
  ]);
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`n${i}`, i]));
  assert.equal(validatePolicyDocument({ ...document, let: many }).length, 1);
});
