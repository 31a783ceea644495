/** Facts and attributes: their static check, their types at run time, and their values in tests of policies. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { listNamedValues } from "../../src/domain/policy/check/expression-names.ts";
import { selectDeclaredMembers } from "../../src/domain/policy/check/select-typed.ts";
import { typeOfJsonSchema } from "../../src/domain/policy/check/static-types.ts";
import { buildPolicySet, compilePolicySet } from "../../src/domain/policy/compile/compile.ts";
import { decide, decideForEntry } from "../../src/domain/policy/decide/decide.ts";
import { Evaluation } from "../../src/domain/policy/decide/evaluation.ts";
import { findFactReads, toSourceFacts, type FactResult } from "../../src/domain/policy/decide/fact-reads.ts";
import { hasUnrecordedInputs } from "../../src/domain/policy/decide/unrecorded-inputs.ts";
import { parsePolicies, parsePolicyTests } from "../../src/domain/policy/parse/parse.ts";
import type { Facts, PolicyDocument } from "../../src/domain/policy/policy-types.ts";
import { runPolicyTest } from "../../src/domain/policy/test/run-tests.ts";

const PRINCIPAL = { key_id: "k", name: "n", agent_id: null, owner: null };
const HEAD = `policy: accounts
facts:
  account:
    source: crm
    with: { id: params.account }
    schema: { type: object, properties: { status: { enum: [open, frozen] }, limit: { type: number } } }
  region: { source: geo, schema: { type: string } }
attributes:
  claims: { type: object, properties: { repository: { type: string } } }
  agent_metadata: { type: object, properties: { team: { type: string } } }
`;
const policy = (when: string, more = ""): string =>
  `${HEAD}${more}rules:\n  - { name: one, tool: bank, when: ${JSON.stringify(when)}, effect: allow }\n`;
const faultsOf = (text: string): string[] => parsePolicies(text, "p.yaml").faults.map(({ message }) => message);
const parsed = (text: string): PolicyDocument => {
  const { documents, faults } = parsePolicies(text, "p.yaml");
  assert.deepEqual(faults, []);
  return documents[0] as PolicyDocument;
};
const compiled = (...documents: PolicyDocument[]) =>
  compilePolicySet(
    buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
  );

test("a step of a scenario gives facts and the agent's attributes", () => {
  const document = parsed(policy('facts.region == "eu" && agent_metadata.team == "x"'));
  const submit = "submit: { agent_id: a, tool: bank, operation: o }";
  const { tests, faults } = parsePolicyTests(
    `now: 2026-01-15T10:00:00Z
scenarios:
  - name: s
    steps:
      - { ${submit}, facts: { region: eu }, agent: { metadata: { team: x } }, expect: { effect: allow } }
      - { ${submit}, facts: { region: us }, agent: { metadata: { team: x } }, expect: { effect: deny } }
      - { ${submit}, facts: { region: eu }, expect: { effect: deny } }
`,
    "x_test.yaml",
  );
  assert.deepEqual(faults, []);
  assert.deepEqual(
    tests.flatMap((one) => runPolicyTest([document], one)).map(({ failure }) => failure),
    [null],
  );
});

describe("the check of conditions that read facts and attributes", () => {
  test("accepts what the schemas allow", () => {
    for (const when of [
      'facts.account.status == "frozen" || facts.region.startsWith("eu-")',
      "has(facts.account.limit) && params.amount <= facts.account.limit",
      'agent_metadata.team == "x" && "gold" in agent_groups && "admin" in principal.roles',
      'principal.claims.repository == "r"',
    ])
      assert.deepEqual(faultsOf(policy(when)), [], when);
  });

  test("reports what can never be true, with one message for one slip", () => {
    const cases: [when: string, fault: RegExp][] = [
      ['facts.acount.status == "open"', /declares no facts\.acount; did you mean "facts\.account"\?/],
      ["has(facts.account)", /test a member of it/],
      ["facts.account.frozen", /facts\.account has no field "frozen"; its fields are status, limit/],
      ['facts.account.status == "closed"', /never equal/],
      ["facts.account.limit > 'x'", /cannot compare/],
      ["facts.region > 5", /cannot compare/],
      ["agent_metadata.tem == 'x'", /did you mean "team"/],
      ["principal.claims.repo == 'x'", /did you mean|its fields are repository/],
      ["principal.role == 'x'", /did you mean "roles"/],
      ["facts['account'].status == 'open'", /a fact is read as facts\.NAME/],
    ];
    for (const [when, fault] of cases) {
      const faults = faultsOf(policy(when));
      assert.equal(faults.length, 1, `${when}: ${faults.join("; ")}`);
      assert.match(faults[0] as string, fault);
    }
    const undeclared = "policy: p\nrules:\n  - { name: one, when: facts.account.open, effect: allow }\n";
    assert.match(faultsOf(undeclared).join(), /there is no facts\.account here/);
  });

  test("keeps facts out of limits, and what changes out of the inputs of facts", () => {
    const limits = "limits:\n  - { name: l, per: facts.region, count: 1, window: 1h }\n";
    assert.match(faultsOf(policy("true == true", limits)).join(), /limits\.0\.per: .*facts\.region/);
    const past = "history: { per: agent, window: 1h, max: 5 }\nrules: [{ name: r, effect: deny }]";
    assert.match(
      faultsOf(HEAD.replace("params.account", "history.size()") + past).join(),
      /facts\.account\.with\.id: there is no history here/,
    );
    assert.match(
      faultsOf(HEAD.replace("params.account", '"[params.account]"') + "rules: [{ name: r, effect: deny }]").join(),
      /must be a string, a number or a bool/,
    );
    const late = "rules: [{ name: r, effect: deny }]\n";
    for (const [input, names, fault] of [
      [
        "params.account + string(now)",
        "",
        /cannot read now: it changes between the read of the source and the decision/,
      ],
      [
        "params.account + day",
        "let: { day: { cel: today }, today: { cel: string(now) } }\n",
        /cannot read day: it depends/,
      ],
    ] as const) {
      const text = HEAD.replace("params.account", JSON.stringify(input)) + names + late;
      const [found, ...others] = parsePolicies(text, "p.yaml").faults;
      assert.match(found?.message ?? "", fault);
      const line = text.split("\n").findIndex((each) => each.includes("with:")) + 1;
      assert.deepEqual([found?.line, others], [line, []]);
      assert.ok((found?.column ?? 0) > text.split("\n")[line - 1]!.indexOf("account +"));
    }
    const derived = "let: { far: { cel: facts.region != 'eu' } }\n";
    assert.deepEqual(faultsOf(policy("far", derived)), []);
  });

  test("lets the input of a fact read another fact, but not itself", () => {
    const rules = "rules: [{ name: r, effect: deny }]\n";
    const reading = (more: string): string => HEAD.replace("params.account", "facts.region + 'x'") + more + rules;
    assert.deepEqual(faultsOf(reading("")), []);
    const circular = (geo: string, more = ""): string =>
      reading(more).replace("source: geo,", `source: geo, with: { near: ${geo} },`);
    for (const [text, circle] of [
      [circular("facts.account.status"), "facts\\.account: reads itself \\(account → region → account\\)"],
      [circular("facts.region"), "facts\\.region: reads itself \\(region → region\\)"],
      [circular("status", "let: { status: { cel: facts.account.status } }\n"), "account → region → account"],
    ] as const)
      assert.match(faultsOf(text).join(), new RegExp(circle), text);
    assert.match(faultsOf(circular("facts.acount.status")).join(), /did you mean "facts\.account"/);
    assert.match(
      faultsOf(HEAD.replace("params.account", "facts.region * 2") + rules).join(),
      /does not accept a string/,
    );
  });

  test("lists facts and declared attributes for completion", () => {
    const names = listNamedValues(parsed(policy("facts.region == 'x'"))).map(({ name }) => name);
    for (const name of ["facts", "facts.account", "facts.account.status", "principal.claims", "agent_metadata.team"])
      assert.ok(names.includes(name), name);
  });
});

test("a value has exactly its declared type, without other members", () => {
  const type = typeOfJsonSchema({
    type: "object",
    properties: {
      status: { enum: ["open", "frozen"] },
      count: { type: "integer" },
      tags: { type: "array", items: { type: "string" } },
      note: { type: ["string", "null"] },
      free: {},
      map: { type: "object", additionalProperties: { type: "number" } },
    },
  });
  const value = { status: "open", count: 2, tags: ["a"], note: null, free: [{ x: 1 }], map: { a: 1.5 } };
  assert.deepEqual(selectDeclaredMembers({ ...value, secret: "x" }, type), { value });
  assert.deepEqual(selectDeclaredMembers({}, type), { value: {} });
  for (const other of [
    { status: "closed" },
    { count: 2.5 },
    { count: "2" },
    { tags: ["a", 1] },
    { tags: { a: "b" } },
    { note: 1 },
    { map: { a: "1" } },
    { map: [] },
    [],
    null,
    "open",
  ])
    assert.equal(selectDeclaredMembers(other as never, type), null, JSON.stringify(other));
});

describe("facts whose inputs read other facts", () => {
  const set = compiled(
    parsed(`policy: orders
facts:
  customer:
    source: customers
    with: { id: owner }
    schema: { type: object, properties: { tier: { type: string } } }
  order: { source: orders, with: { id: params.order }, schema: { type: object, properties: { customer: { type: integer } } } }
  unused: { source: geo, schema: { type: string } }
let: { owner: { cel: facts.order.customer } }
rules:
  - { name: gold, tool: bank, when: 'facts.customer.tier == "gold"', effect: allow }
`),
  );
  const request = { agent_id: "a", tool: "bank", operation: "x", params: { order: "o-1" }, context: {} };
  const start = new Evaluation(set, request, { principal: PRINCIPAL }, 0);
  const known = (value: FactResult["value"], fault: FactResult["fault"] = null): FactResult => ({
    value,
    fault,
    at: 0,
  });
  const calls = (evaluation: Evaluation) => findFactReads(evaluation).map(({ call }) => call?.inputs);
  const answer = (evaluation: Evaluation, ...results: FactResult[]): Evaluation =>
    evaluation.withSources(toSourceFacts(findFactReads(evaluation), results, 0));
  const decided = (evaluation: Evaluation) =>
    decide(set, request, { principal: PRINCIPAL, sources: evaluation.sources }, 0);

  test("are read after them", () => {
    assert.deepEqual(calls(start), [{ id: "o-1" }]);
    const second = answer(start, known({ customer: 7 }));
    assert.deepEqual(calls(second), [{ id: 7 }]);
    const all = answer(second, known({ tier: "gold" }));
    assert.deepEqual(calls(all), []);
    assert.deepEqual([all.sources.map(({ name }) => name), decided(all).effect], [["order", "customer"], "allow"]);
    assert.equal(hasUnrecordedInputs(start, { principal: PRINCIPAL, sources: second.sources }), true);
    assert.equal(hasUnrecordedInputs(start, { principal: PRINCIPAL, sources: all.sources }), false);
  });

  test("have the fault of the fact that they read, and are not read", () => {
    for (const [given, fault, reason] of [
      [known(null, "no_answer"), "no_answer", /the source of a fact did not answer/],
      [known(null, "not_found"), "not_found", /has no record for its inputs/],
      [known(null), "not_found", /has no record for its inputs/],
      [known([]), "wrong_type", /does not match its schema/],
      [known({}), "no_input", /an input of a fact could not be evaluated/],
    ] as const) {
      const second = answer(start, given);
      assert.deepEqual(calls(second), [undefined]);
      const all = answer(second);
      assert.equal(all.sources[1]?.fault, fault);
      assert.match(decided(all).reason, reason);
      assert.equal(decided(all).effect, "deny");
    }
  });

  test("change their digest with the declaration of the fact that they read", () => {
    const bases = (type: string) => {
      const text = HEAD.replace("params.account", "string(facts.region)").replace(
        "schema: { type: string } }\natt",
        `schema: { type: ${type} } }\natt`,
      );
      return compiled(parsed(`${text}rules: [{ name: r, effect: deny }]\n`)).policies[0]?.facts.map(
        ({ basis }) => basis,
      );
    };
    assert.notEqual(bases("string")?.[0], bases("[string, integer]")?.[0]);
  });
});

const REQUEST = { agent_id: "a", tool: "bank", operation: "x", params: { account: "acc-1", amount: 5 }, context: {} };

describe("a decision with facts", () => {
  const document = parsed(`${HEAD}rules:
  - { name: frozen, tool: bank, operation: x, when: 'facts.account.status == "frozen"', effect: deny }
  - { name: far, tool: ship, when: 'facts.region == "far"', effect: deny }
  - { name: rest, effect: allow }
`);
  const set = compiled(document);
  const read = (request = REQUEST) => findFactReads(new Evaluation(set, request, { principal: PRINCIPAL }, 0));

  test("reads only the facts that conditions of matching rules read", () => {
    assert.deepEqual(
      read().map(({ call }) => call),
      [{ policy: "accounts", shadow: false, source: "crm", inputs: { id: "acc-1" } }],
    );
    assert.deepEqual(
      read({ ...REQUEST, tool: "ship" }).map(({ call }) => call),
      [{ policy: "accounts", shadow: false, source: "geo", inputs: {} }],
    );
    assert.deepEqual(read({ ...REQUEST, operation: "other" }), []);
    assert.deepEqual(read({ ...REQUEST, params: {} as never })[0]?.call, null);
  });

  test("reads nothing for inputs that need many steps, because they are evaluated under the ledger's lock", () => {
    const many = compiled(
      parsed(
        HEAD.replace("params.account", '"string(params.list.filter(x, x > 0).size())"') +
          "rules: [{ name: r, when: facts.account.status == 'open', effect: allow }]\n",
      ),
    );
    const callFor = (length: number) => {
      const request = { ...REQUEST, params: { list: Array<number>(length).fill(1) } };
      return findFactReads(new Evaluation(many, request, { principal: PRINCIPAL }, 0))[0]?.call;
    };
    assert.deepEqual([callFor(100)?.inputs, callFor(2_000)], [{ id: "100" }, null]);
  });

  test("a decision reads 50 facts for each source of policies, so that one team cannot use up the limit of another", () => {
    const facts = (count: number): string =>
      Array.from({ length: count }, (_, i) => `  f${i}: { source: geo, schema: { type: string } }\n`).join("");
    const set = buildPolicySet(
      Array.from({ length: 12 }, (_, i) => ({
        policy: `p${String(i).padStart(2, "0")}`,
        version: 1,
        definition: parsed(`policy: p\nfacts:\n${facts(9)}rules: [{ name: r, effect: allow }]\n`),
      })),
    );
    compilePolicySet(set, (policy) => (policy < "p05" ? "baseline" : policy < "p10" ? "team" : null));
    assert.throws(
      () => compilePolicySet(set, (policy) => (policy < "p05" ? "baseline" : "team")),
      (error: Error) =>
        error.message.includes('"p10" has the last of 54 facts; at most 50') && !error.message.includes("p04"),
    );
  });

  test("denies without them, and with those of another declaration", () => {
    const [{ fact }] = read() as [ReturnType<typeof read>[number]];
    const source = {
      policy: "accounts",
      name: "account",
      basis: fact.basis,
      at: "",
      value: { status: "open" },
      fault: null,
    };
    const decided = (facts: Partial<Facts>) => decide(set, REQUEST, { principal: PRINCIPAL, ...facts }, 0);
    assert.equal(decided({ sources: [source] }).effect, "allow");
    for (const sources of [
      [],
      [{ ...source, basis: "0" }],
      [{ ...source, policy: "p" }],
      [{ ...source, fault: "no_answer" as const }],
    ]) {
      const { effect, reason_code } = decided({ sources });
      assert.deepEqual([effect, reason_code], ["deny", "CONDITION_ERROR"]);
    }
    const evaluation = new Evaluation(set, REQUEST, { principal: PRINCIPAL }, 0);
    assert.deepEqual(
      [[], [source]].map((sources) => hasUnrecordedInputs(evaluation, { principal: PRINCIPAL, sources })),
      [true, false],
    );
  });

  test("counts as unrecorded in a backtest if new policies read attributes that it did not", () => {
    const reading = compiled(parsed("policy: p\nrules:\n  - { name: r, when: 'agent_groups == []', effect: allow }\n"));
    const evaluation = new Evaluation(reading, REQUEST, { principal: PRINCIPAL }, 0);
    const attributes = { agent_groups: [], agent_metadata: {}, groups: [], roles: [] };
    assert.equal(hasUnrecordedInputs(evaluation, { principal: PRINCIPAL }), true);
    assert.equal(hasUnrecordedInputs(evaluation, { principal: PRINCIPAL, attributes }), false);
    assert.equal(decide(reading, REQUEST, { principal: PRINCIPAL }, 0).reason_code, "CONDITION_ERROR");
  });

  test("records attributes that only the history of a policy for other tools reads, so that its replay is equal", () => {
    const both = compiled(
      parsed("policy: a\nrules: [{ name: r, effect: allow }]\n"),
      parsed(
        "policy: b\nhistory: { per: agent_metadata.team, window: 1h, max: 5 }\n" +
          "rules: [{ name: r, tool: deploy, when: history.size() < 3, effect: allow }]\n",
      ),
    );
    const attributes = { agent_groups: [], agent_metadata: { team: "x" }, groups: [], roles: [] };
    const facts = { principal: PRINCIPAL, attributes };
    const recorded = decideForEntry(new Evaluation(both, REQUEST, facts, 0), facts);
    assert.equal(recorded.decision.effect, "allow");
    assert.deepEqual(decide(both, REQUEST, recorded.facts, 0), recorded.decision);
    assert.equal(hasUnrecordedInputs(new Evaluation(both, REQUEST, facts, 0), { principal: PRINCIPAL }), true);
  });

  test("takes them from the test of a policy, and misses those that it does not give", () => {
    const { tests, faults } = parsePolicyTests(
      `now: 2026-01-15T10:00:00Z
cases:
  - name: frozen
    action: { agent_id: a, tool: bank, operation: x, params: { account: acc-1 } }
    facts: { account: { status: frozen } }
    expect: { effect: deny, rule: frozen }
  - name: no answer
    action: { agent_id: a, tool: bank, operation: x, params: { account: acc-1 } }
    expect: { effect: deny, reason_code: CONDITION_ERROR }
  - name: another type
    action: { agent_id: a, tool: bank, operation: x, params: { account: acc-1 } }
    facts: { account: { status: closed } }
    expect: { effect: deny, reason_code: CONDITION_ERROR }
  - name: no such fact
    action: { agent_id: a, tool: bank, operation: x, params: { account: acc-1 } }
    facts: { acount: { status: open } }
    expect: { effect: allow }
`,
      "t.yaml",
    );
    assert.deepEqual(faults, []);
    assert.deepEqual(
      runPolicyTest([document], tests[0] as (typeof tests)[number]).map(({ failure }) => failure),
      [null, null, null, 'facts: the policies declare no fact "acount"'],
    );
  });
});
