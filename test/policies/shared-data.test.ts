/** Shared data: files of values that several policies of a folder use, with other values in some environments. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { buildPolicySet, compilePolicySet, type CompiledPolicySet } from "../../src/domain/policy/compile/compile.ts";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import { parsePolicies, validatePolicyDocument } from "../../src/domain/policy/parse/parse.ts";
import { MAX_DATA_BYTES } from "../../src/domain/policy/parse/shared-data.ts";
import { diffPolicySets } from "../../src/domain/policy/diff/set-diff.ts";
import {
  checkPolicyFolder,
  loadPolicyFolder,
  parsePolicyFolder,
  type PolicyFolder,
} from "../../src/policies/folder.ts";
import { assentInProcess } from "../support/cli.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const DATA = `data: limits
values:
  small: 100
  currencies: [USD, EUR]
environments:
  staging: { small: 5 }
`;
const POLICY = `policy: refunds
data: [limits]
rules:
  - name: small ones
    when: params.amount <= data.limits.small && params.currency in data.limits.currencies
    effect: allow
`;
const testOf = (amount: number, effect: string, environment = "") =>
  `now: 2026-01-15T10:00:00Z\n${environment}cases:\n  - name: "${amount}"\n    action: { agent_id: a, tool: t, operation: o, params: { amount: ${amount}, currency: EUR } }\n    expect: { effect: ${effect} }\n`;

function parse(files: Record<string, string>, environment: string | null = null): PolicyFolder {
  const contents = Object.entries(files).map(([name, text]) => ({ name, content: new TextEncoder().encode(text) }));
  return parsePolicyFolder("policies", contents, { environment });
}

const messages = ({ faults }: Pick<PolicyFolder, "faults">): string[] =>
  faults.map(({ file, line, column, message }) => `${file}:${line}:${column} ${message}`);

function compile({ documents }: PolicyFolder): CompiledPolicySet {
  return compilePolicySet(
    buildPolicySet(documents.map(({ document }) => ({ policy: document.policy, version: 1, definition: document }))),
  );
}

const FACTS = { principal: { key_id: "k", name: "n", agent_id: null, owner: null } };
const effectFor = (set: CompiledPolicySet, amount: number) =>
  decide(set, { agent_id: "a", tool: "t", operation: "o", params: { amount, currency: "USD" }, context: {} }, FACTS, 0)
    .effect;

function folderOf(t: TestContext, files: Record<string, string>): string {
  const folder = temporaryFolder("assent-data-");
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

test("a policy reads the values of its environment, and those of no environment without one", () => {
  const files = { "limits_data.yaml": DATA, "refunds.yaml": POLICY };
  const effects = (environment: string | null) => {
    const folder = parse(files, environment);
    assert.deepEqual(messages(folder), []);
    return [5, 100, 101].map((amount) => effectFor(compile(folder), amount));
  };
  assert.deepEqual(effects(null), ["allow", "allow", "deny"]);
  assert.deepEqual(effects("staging"), ["allow", "deny", "deny"]);
});

test("the values are part of the policy: they change the digest, and the diff names them", () => {
  const before = parse({ "limits_data.yaml": DATA, "refunds.yaml": POLICY });
  const after = parse({ "limits_data.yaml": DATA.replace("small: 100", "small: 200"), "refunds.yaml": POLICY });
  assert.notEqual(compile(before).digest, compile(after).digest);
  const documents = (folder: PolicyFolder) => folder.documents.map(({ document }) => document);
  assert.deepEqual(
    diffPolicySets(documents(before), documents(after)).policies.flatMap(({ changes }) =>
      changes.map(({ summary }) => summary),
    ),
    ["the policy has another data.limits.small: 200; it was 100"],
  );
  // A version of the policy contains its values, so that it can be replayed without the file.
  assert.deepEqual(before.documents[0]?.document.data, { limits: { small: 100, currencies: ["USD", "EUR"] } });
  assert.deepEqual(validatePolicyDocument(before.documents[0]?.document), []);
});

test("tests run with the values of the environment that they name", async (t) => {
  const folder = folderOf(t, {
    "limits_data.yaml": DATA,
    "refunds.yaml": POLICY,
    "a_test.yaml": testOf(100, "allow"),
    "b_test.yaml": testOf(100, "deny", "environment: staging\n"),
  });
  assert.deepEqual(messages(await checkPolicyFolder(folder)), []);
  assert.deepEqual(messages(await checkPolicyFolder(folder, { environment: "staging" })), [
    'a_test.yaml:3:5 the test "100" fails: effect is deny, expected allow (no rule of the active policies matches "t" "o", so it is denied)',
  ]);
  writeFileSync(join(folder, "b_test.yaml"), testOf(100, "deny", "environment: stagin\n"));
  assert.deepEqual(messages(await checkPolicyFolder(folder)), [
    'b_test.yaml:2:14 the test "environment stagin" fails: the environment "stagin" is in no file of shared data; they have staging',
  ]);
});

test("faults in shared data have a position and say what to write", () => {
  const cases: [data: string, policy: string, fault: string][] = [
    [
      DATA,
      POLICY.replace("[limits]", "[limit]"),
      'refunds.yaml:2:8 data.0: there is no shared data "limit"; did you mean "limits"?',
    ],
    [
      DATA,
      POLICY.replace("[limits]", "[rates]"),
      'refunds.yaml:2:8 data.0: there is no shared data "rates"; the folder has limits',
    ],
    [
      DATA,
      POLICY.replace("limits.small", "limits.smal"),
      'refunds.yaml:5:39 rules.0.when: data.limits has no field "smal"; did you mean "small"?',
    ],
    [
      DATA,
      POLICY.replace("data: [limits]\n", ""),
      "refunds.yaml:4:28 rules.0.when: the policy lists no shared data; name it, such as data: [limits]",
    ],
    [
      DATA.replace("small: 5", "smal: 5"),
      POLICY,
      'limits_data.yaml:6:14 environments.staging.smal: values has no "smal"; did you mean "small"?',
    ],
    [
      DATA.replace("small: 5", 'small: "5"'),
      POLICY,
      "limits_data.yaml:6:21 environments.staging.small: is a text, and in values it is a number",
    ],
    [
      `${DATA}---\n${DATA}`,
      POLICY,
      'limits_data.yaml:8:7 the data "limits" is in limits_data.yaml already; give each its own name',
    ],
    [
      DATA.replace("values:", "value:"),
      POLICY,
      'limits_data.yaml:2:1 value: "value" is not recognized; did you mean "values"?',
    ],
  ];
  for (const [data, policy, fault] of cases)
    assert.deepEqual(messages(parse({ "limits_data.yaml": data, "refunds.yaml": policy })), [fault]);
  assert.deepEqual(messages(parse({ "refunds.yaml": POLICY })), [
    'refunds.yaml:2:8 data.0: there is no shared data "limits"; write one, in a file such as limits_data.yaml with the keys data and values',
  ]);
  assert.deepEqual(messages(parse({ "limits_data.yaml": DATA, "refunds.yaml": POLICY }, "prod")), [
    'policies:null:null the environment "prod" is in no file of shared data; they have staging',
  ]);
});

test("a policy that is sent without a folder must contain its data", () => {
  assert.deepEqual(
    parsePolicies(POLICY, "body").faults.map(({ line, message }) => [line, message]),
    [
      [
        2,
        'data: names shared data, which only a folder of policies has; send the values, such as {"limits": {"small": 100}}',
      ],
    ],
  );
  const data = { limits: { small: 1, text: "x".repeat(MAX_DATA_BYTES) } };
  const [fault, ...others] = validatePolicyDocument({ policy: "p", data, rules: [{ name: "r", effect: "allow" }] });
  assert.match(fault?.detail ?? "", /at most 262144 are allowed/);
  assert.deepEqual(others, []);
});

test("the command line checks every environment, and formats data files", async (t) => {
  const folder = folderOf(t, {
    "limits_data.yaml": "data:   limits\nvalues: { of: { usd: 5 } }\nenvironments: { staging: { of: { eur: 5 } } }\n",
    "refunds.yaml":
      "policy: refunds\ndata: [limits]\nrules: [{ name: r, when: params.amount <= data.limits.of.usd, effect: allow }]\n",
  });
  const checked = await assentInProcess("policy", "check", folder);
  assert.equal(checked.code, 1);
  assert.match(checked.err, /in the environment "staging": rules\.0\.when: data\.limits\.of has no field "usd"/);
  assert.deepEqual((await loadPolicyFolder(folder)).faults, []);
  const formatted = await assentInProcess("policy", "fmt", folder, "--check");
  assert.match(formatted.out, /limits_data\.yaml/);
  assert.match(formatted.err, /1 of 2 files would change/);
});
