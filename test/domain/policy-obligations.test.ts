/** `set` and `clamp` of rules: how they combine, when they deny, and what the changed request is decided on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { applyDecisionObligations } from "../../src/domain/obligations.ts";
import { buildPolicySet, compilePolicySet } from "../../src/domain/policy/compile/compile.ts";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import { omitRedacted, redactParams } from "../../src/domain/policy/decide/redact.ts";
import { parsePolicies, parsePolicyTests } from "../../src/domain/policy/parse/parse.ts";
import type { Decision, Facts, PolicyDocument } from "../../src/domain/policy/policy-types.ts";
import { runPolicyTest } from "../../src/domain/policy/test/run-tests.ts";

const FACTS: Facts = { principal: { key_id: "k", name: "k", agent_id: null, owner: null } };

function policies(...texts: string[]) {
  return texts.flatMap((text) => {
    const { documents, faults } = parsePolicies(text, "p.yaml");
    assert.deepEqual(faults, []);
    return documents;
  });
}

function run(rules: string[], params: object, facts: Partial<Facts> = {}): Decision & { runs: unknown } {
  const documents = policies(...rules.map((rule, i) => `policy: p${i}\n${rule}`));
  const members = documents.map((definition) => ({ policy: definition.policy, version: 1, definition }));
  const request = { agent_id: "bot", tool: "pay", operation: "once", params: params as never, context: {} };
  const decision = decide(compilePolicySet(buildPolicySet(members)), request, { ...FACTS, ...facts }, 0);
  return { ...decision, runs: applyDecisionObligations(request, decision)?.params ?? null };
}

const allow = (obligations: string, more = ""): string =>
  `rules: [{ name: small, tool: pay, ${more} effect: allow, obligations: ${obligations} }]`;

test("set and clamp change the request that may run, and are part of the decision", () => {
  const rule = allow("{ set: { params.to.currency: EUR }, clamp: { params.amount: { min: 1, max: 500 } } }");
  const changed = run([rule], { amount: 900, to: { currency: "USD", iban: "x" } });
  assert.deepEqual(changed.runs, { amount: 500, to: { currency: "EUR", iban: "x" } });
  assert.deepEqual(changed.obligations, [
    { max: 500, min: 1, path: "params.amount" },
    { path: "params.to.currency", set: "EUR" },
  ]);
  assert.equal(changed.effect, "allow");
  const kept = run([rule], { amount: 20, to: { currency: "EUR" } });
  assert.deepEqual([kept.effect, kept.runs], ["allow", null]);
});

test("obligations of several policies combine: the tightest bounds apply, including those of a rule that only allows", () => {
  const ask = `rules: [{ name: ask, tool: pay, effect: require_approval, approval: { editable: [params.amount] }, obligations: { clamp: { params.amount: { min: 5 } } } }]`;
  const decision = run(
    [allow("{ clamp: { params.amount: { max: 300 } } }"), allow("{ clamp: { params.amount: { max: 500 } } }"), ask],
    { amount: 400 },
  );
  assert.deepEqual([decision.effect, decision.runs], ["require_approval", { amount: 300 }]);
  assert.equal(decision.approval?.editable, undefined, "approvers do not change it once more");
});

test("an obligation that cannot be met denies the action, and the message contains rule and parameter", () => {
  const clamp = allow("{ clamp: { params.amount: { max: 500 } } }");
  const cases: [string[], object, RegExp][] = [
    [[clamp], {}, /rule "small" in policy "p0": params.amount: the request does not have it/],
    [[clamp], { amount: "900" }, /params.amount: it must be a number/],
    [[allow("{ set: { params.dry: true } }")], { dry: "no" }, /it must be a boolean/],
    [[allow("{ set: { params.a: x } }"), allow("{ set: { params.a: y } }")], { a: "z" }, /to "x" and to "y"/],
    [[allow("{ set: { params.amount: 900 } }"), clamp], { amount: 1 }, /900, which is outside the bounds/],
    [[allow("{ clamp: { params.amount: { min: 600 } } }"), clamp], { amount: 1 }, /at least 600 and at most 500/],
  ];
  for (const [rules, params, reason] of cases) {
    const decision = run(rules, params);
    assert.deepEqual([decision.effect, decision.reason_code, decision.runs], ["deny", "OBLIGATION_UNMET", null]);
    assert.match(decision.reason, reason);
    assert.equal(decision.obligations, undefined);
  }
});

test("the changed request is evaluated again, and the stricter of both decisions counts", () => {
  const second = (effect: string): string =>
    `rules: [{ name: never, tool: pay, when: params.amount == 500, effect: ${effect} }, { name: rest, tool: pay, effect: allow }]`;
  const clamp = allow("{ clamp: { params.amount: { max: 500 } } }");
  assert.deepEqual([run([clamp, second("deny")], { amount: 900 }).rule], ["never"]);
  assert.equal(run([clamp, second("deny")], { amount: 900 }).runs, null);
  assert.equal(run([clamp, second("require_approval")], { amount: 900 }).effect, "require_approval");
  // The rule that clamped requires approval of what it was asked for; another rule allows the result.
  const steps = `rules:
  - { name: large, tool: pay, when: params.amount > 500, effect: require_approval, obligations: { clamp: { params.amount: { max: 500 } } } }
  - { name: rest, tool: pay, effect: allow }`;
  const decision = run([steps], { amount: 900 });
  assert.deepEqual([decision.effect, decision.rule, decision.runs], ["require_approval", "large", { amount: 500 }]);
});

test("a change that would cause another change, or other facts, is denied", () => {
  const steps = `rules:
  - { name: a, tool: pay, when: params.amount > 500, effect: allow, obligations: { clamp: { params.amount: { max: 500 } } } }
  - { name: b, tool: pay, effect: allow, obligations: { clamp: { params.amount: { max: 400 } } } }`;
  assert.match(run([steps], { amount: 900 }).reason, /they change params.amount again/);
  const history = `history: { per: string(params.amount), window: 1h, max: 5 }
rules: [{ name: a, tool: pay, when: 'history.size() == 0', effect: allow, obligations: { clamp: { params.amount: { max: 5 } } } }]`;
  const basis = run([history], { amount: 1 });
  assert.equal(basis.reason_code, "CONDITION_ERROR", "no history in the facts");
  const plain = history.replace("when: 'history.size() == 0', ", "");
  assert.match(run([plain], { amount: 9 }).reason, /the owner of a history depends on params.amount/);
});

test("a request that was answered already changes no more", () => {
  const rule = allow("{ clamp: { params.amount: { max: 500 } } }");
  const decision = run([rule], { amount: 900 }, { final_request: true });
  assert.deepEqual([decision.effect, decision.reason_code], ["deny", "OBLIGATION_UNMET"]);
  assert.equal(run([rule], { amount: 500 }, { final_request: true }).effect, "allow");
});

test("limits count the changed request", () => {
  const rule = `${allow("{ clamp: { params.amount: { max: 500 } } }")}
limits: [{ name: daily, tool: pay, sum: params.amount, at_most: 500, window: 24h }]`;
  const [document] = policies(`policy: p\n${rule}`);
  const scenario = `now: 2026-01-01T00:00:00Z
scenarios:
  - name: twice
    steps:
      - { submit: { agent_id: bot, tool: pay, operation: once, params: { amount: 900 } }, id: a, expect: { effect: allow, params: { amount: 500 } } }
      - { submit: { agent_id: bot, tool: pay, operation: once, params: { amount: 1 } }, expect: { effect: deny, reason_code: LIMIT_EXCEEDED } }
      - { start: a, expect: { status: executing } }
cases:
  - name: wrong
    action: { agent_id: bot, tool: pay, operation: once, params: { amount: 900 } }
    expect: { effect: allow, params: { amount: 900 } }
`;
  const { tests, faults } = parsePolicyTests(scenario, "t.yaml");
  assert.deepEqual(faults, []);
  const results = runPolicyTest([document!], tests[0]!);
  assert.match(results[0]?.failure ?? "", /params.amount is 500, expected 900/);
  assert.equal(results[1]?.failure, null);
});

test("check finds obligations that can never be met, with line and column", () => {
  const text = `policy: p
tools:
  - { tool: pay, params: { type: object, properties: { amount: { type: number }, to: { type: string } } } }
rules:
  - { name: no, tool: pay, operation: x, effect: deny, obligations: { set: { params.to: a } } }
  - name: yes
    tool: pay
    effect: allow
    obligations:
      set: { params.to: 5, params.currency: EUR, params.amount: 3 }
      clamp: { params.amount: { min: 9, max: 20 }, params.to: { max: 1 } }
  - { name: bad, tool: pay, operation: y, effect: allow, obligations: { clamp: { params.amount: { min: 9, max: 1 } } } }
  - { name: empty, tool: pay, operation: z, effect: allow, obligations: {} }
`;
  const { faults } = parsePolicies(text, "p.yaml");
  const found = faults.map(({ line, message }) => `${line}: ${message}`).join("\n");
  for (const wanted of [
    /5: .*no meaning with the effect deny/,
    /10: .*params.to is a string, not a number/,
    /10: .*no parameter params.currency/,
    /11: .*set to 3, which is outside/,
    /12: .*at least 9 and at most 1/,
    /13: /,
  ])
    assert.match(found, wanted);
  assert.ok(faults.every(({ column }) => column !== null));
});

test("an error in a suggested policy does not remove the obligations of others", () => {
  const base = "rules: [{ name: small, tool: pay, effect: allow }]";
  const caps = allow("{ clamp: { params.amount: { max: 500 } } }");
  const suggested = `suggested: { in_place_of: { policy: p0, rule: small } }
rules: [{ name: as decided, tool: pay, operation: once, agent: [bot], when: params.region == 'eu', effect: allow }]`;
  const decision = run([base, caps, suggested], { amount: 9000 }, { suggested: ["p2"] });
  assert.deepEqual([decision.effect, decision.runs], ["allow", { amount: 500 }]);
});

test("a suggested policy replaces no approval if obligations change the request", () => {
  const base = `rules: [{ name: big, tool: pay, when: params.amount > 1000, effect: require_approval }, { name: other, tool: pay, effect: allow }]`;
  const suggested = `suggested: { in_place_of: { policy: p0, rule: big } }
rules: [{ name: as decided, tool: pay, operation: once, agent: [bot], when: params.amount <= 500, effect: allow }]`;
  const caps = allow("{ clamp: { params.amount: { max: 500 } } }");
  const decision = run([base, suggested, caps], { amount: 9000 }, { suggested: ["p1"] });
  assert.deepEqual([decision.effect, decision.runs], ["require_approval", { amount: 500 }]);
});

test("a suggested policy cannot have obligations, and a redacted path is checked in rules that deny", () => {
  const fault = (text: string) => parsePolicies(text, "p.yaml").faults.map(({ message }) => message);
  const suggested = `policy: s
suggested: { in_place_of: { policy: p0, rule: big } }
rules: [{ name: as decided, tool: pay, operation: once, agent: [bot], effect: allow, obligations: { set: { params.dry: true } } }]`;
  assert.match(fault(suggested).join(), /has no obligations/);
  const deny = `policy: d
tools:
  - { tool: pay, params: { type: object, additionalProperties: false, properties: { card: { type: string } } } }
rules: [{ name: no, tool: pay, effect: deny, obligations: { redact: [params.crad] } }]`;
  assert.match(fault(deny).join(), /no parameter params.crad/);
});

test("a redacted path hides what is in the place of its object, and nothing else", () => {
  const rule = "rules: [{ name: hide, tool: pay, effect: deny, obligations: { redact: [params.card.number] } }]";
  const [definition] = policies(`policy: p0\n${rule}`) as [PolicyDocument];
  const set = compilePolicySet(buildPolicySet([{ policy: "p0", version: 1, definition }]));
  const action = { agent_id: "bot", tool: "pay", operation: "once" };
  const shown: [params: string, redacted: string, omitted: string][] = [
    ['{"card":{"number":"4","month":5}}', '{"card":{"number":"[redacted]","month":5}}', '{"card":{"month":5}}'],
    ['{"card":"{\\"number\\":4}","a":4}', '{"card":"[redacted]","a":4}', '{"a":4}'],
    ['{"card":["4",{"number":4},null]}', '{"card":["[redacted]",{"number":"[redacted]"},null]}', '{"card":[{},null]}'],
    ['{"card":null,"__proto__":4}', '{"card":null,"__proto__":4}', '{"card":null,"__proto__":4}'],
  ];
  for (const [params, redacted, omitted] of shown) {
    assert.equal(JSON.stringify(redactParams(set, action, JSON.parse(params))), redacted);
    assert.equal(JSON.stringify(omitRedacted(set, action, JSON.parse(params))), omitted);
  }
});
