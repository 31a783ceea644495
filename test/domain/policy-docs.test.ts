/** The examples and tables of docs/policies.md match the code. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { celEnv } from "@bufbuild/cel";
import type { JsonObject } from "../../src/domain/json.ts";
import {
  Activation,
  compileCondition,
  MAX_COMPREHENSIONS,
  MAX_EXPRESSION_DEPTH,
  MAX_EXPRESSION_LENGTH,
  MAX_COMPREHENSION_NESTING,
} from "../../src/domain/policy/condition/condition.ts";
import { FUNCTION_NAMES, MAX_STEPS } from "../../src/domain/policy/condition/cel.ts";
import { MAX_PATTERN_INSTRUCTIONS } from "../../src/domain/policy/condition/cel-patterns.ts";
import { parsePolicies, parsePolicyTests, parseSharedData } from "../../src/domain/policy/parse/parse.ts";
import { LANGUAGE_REASONS } from "../../src/domain/policy/policy-types.ts";
import { selectEnvironment } from "../../src/domain/policy/parse/shared-data.ts";
import { RuleSchema } from "../../src/domain/policy/parse/policy-schema.ts";
import { runPolicyTest } from "../../src/domain/policy/test/run-tests.ts";
import { ROOT } from "../support/runtimes.ts";

const page = readFileSync(`${ROOT}docs/policies.md`, "utf8");
const blocks = (kind: string): string[] =>
  [...page.matchAll(/^```(.*)\n([^]*?)^```$/gm)]
    .filter(([, info]) => info === kind)
    .map(([, , body]) => body as string);
const shared = blocks("yaml data").flatMap((text) => parseSharedData(text, "docs/policies.md").data);
const policies = blocks("yaml policy").flatMap((text) => {
  const { documents, faults } = parsePolicies(text, "docs/policies.md", selectEnvironment(shared, null));
  assert.deepEqual(faults, []);
  return documents;
});

test("the policies of the page parse", () => {
  assert.deepEqual(
    policies.map(({ policy }) => policy),
    [
      "payments",
      "functions",
      "invoices",
      "vip-refunds",
      "refunds",
      "spending",
      "mail",
      "transfers",
      "attempts",
      "looked-up",
      "accounts",
      "order-refunds",
      "production",
      "payouts",
      "once",
      "cards",
    ],
  );
});

test("the tests of the page pass", () => {
  const results = blocks("yaml test").flatMap((text) => {
    const { tests, faults } = parsePolicyTests(text, "docs/policies.md");
    assert.deepEqual(faults, []);
    return tests.flatMap((one) => runPolicyTest(policies, one));
  });
  assert.equal(results.length, 22);
  assert.deepEqual(
    results.filter(({ failure }) => failure !== null),
    [],
  );
});

/** Each condition of the page, with an action for which it is true and one for which it is false. */
const CONDITIONS: [holds: Given, fails: Given][] = [
  [{ params: { amount: 1000 } }, { params: { amount: 1000.01 } }],
  [{ params: { to: "grace@example.com" } }, { params: { to: "ada@customer.test, grace@example.com" } }],
  [{ params: { command: "ls; rm -rf x" } }, { params: { command: "ls" } }],
  [{ params: { items: [{ price: 99 }, { price: 1.5 }] } }, { params: { items: [{ price: 100 }] } }],
  [
    { params: { recipients: ["grace@example.com", "ada@customer.test"] } },
    { params: { recipients: ["grace@example.com"] } },
  ],
  [{ owner: "user:ada" }, { owner: "user:019346a0-0000-7000-8000-000000000000" }],
  [{ now: "2026-01-15T08:00:00Z" }, { now: "2026-01-17T08:00:00Z" }],
  [{ params: { ordered_at: "2026-01-01T00:00:00Z" } }, { params: { ordered_at: "2025-12-01T00:00:00Z" } }],
  [{ context: { ticket: "OPS-7" } }, { context: { ticket: "OPS-7 or so" } }],
  [{ params: { amount: 840 } }, { params: { amount: 841 } }],
  [{ params: { amount: 800 } }, { params: { amount: 800.5 } }],
  [{ params: { items: [{ price: 250 }, { price: 249.5 }] } }, { params: { items: [{ price: 501 }] } }],
  [{ params: { items: [] } }, { params: { items: [{ price: 841 }] } }],
  [{ params: { items: [{ quantity: 2 }, { quantity: 10 }] } }, { params: { items: [{ quantity: 11 }] } }],
  [{ params: { repository: "docs", number: 7 } }, { params: { repository: "docs", number: 9 } }],
  [{ params: { amount: 2.5, displayed: "2.50" } }, { params: { amount: 2, displayed: "2" } }],
  [{ params: { host: "10.1.2.3" } }, { params: { host: "11.1.2.3" } }],
  [{ params: { host: "10.0.0.1" } }, { params: { host: "10.0.0.2" } }],
  [{ params: {} }, { params: { priority: "urgent" } }],
  [{ params: { labels: ["draft"] } }, { params: { order: { total: 101 }, labels: ["draft"] } }],
  [{ params: { ticket: "OPS-1" } }, { params: {} }],
  [{ params: { branch: "release/7" } }, { params: { branch: "main" } }],
  [{ params: { body: "a@example.com, b@example.com" } }, { params: { body: "a@example.com.evil.test" } }],
  [{ params: { phone: "+49 30 1" } }, { params: { phone: "+1 49" } }],
];

interface Given {
  params?: JsonObject;
  context?: JsonObject;
  owner?: string;
  now?: string;
}

function given({ params = {}, context = {}, owner, now = "2026-01-15T10:00:00Z" }: Given): Activation {
  const principal = { key_id: "k", name: "n", agent_id: null, owner: owner ?? null };
  return new Activation({ agent_id: "a", tool: "t", operation: "o", params, context }, { principal }, Date.parse(now));
}

test("the conditions of the page are true and false as described", () => {
  const lines = blocks("cel").flatMap((text) => text.trim().split("\n"));
  assert.equal(lines.length, CONDITIONS.length);
  for (const [i, [holds, fails]] of CONDITIONS.entries()) {
    const line = lines[i] as string;
    const compiled = compileCondition(line);
    assert.ok(compiled.ok, `${line}: ${compiled.ok ? "" : compiled.message}`);
    assert.deepEqual(compiled.condition.evaluate(given(holds)), { value: true }, line);
    assert.deepEqual(compiled.condition.evaluate(given(fails)), { value: false }, line);
  }
});

test("the page has every reason code, and no other", () => {
  const listed = [...page.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, code]) => code as string);
  assert.deepEqual(listed.sort(), [...LANGUAGE_REASONS].sort());
});

test("the page has every key of a rule and the limits of the code", () => {
  for (const key of Object.keys(RuleSchema.properties)) {
    if (key !== "description") assert.match(page, new RegExp(`\`${key}[\`.]`), key);
  }
  const number = (n: number): string => n.toLocaleString("en-US");
  assert.ok(
    page.includes(
      `${number(MAX_EXPRESSION_LENGTH)} characters, ${MAX_EXPRESSION_DEPTH} levels,\n${MAX_COMPREHENSIONS} comprehensions`,
    ),
  );
  assert.equal(MAX_COMPREHENSION_NESTING, 3);
  assert.ok(page.includes(`most ${MAX_PATTERN_INSTRUCTIONS} instructions`));
  assert.ok(page.includes(`${number(MAX_STEPS)} steps`));
});

test("the page names every function of the extensions", () => {
  const [, section] = /### Functions\n([^]*?)\n### /.exec(page) as RegExpExecArray;
  const standard = new Set([...celEnv().funcs].map(({ name }) => name));
  const missing = FUNCTION_NAMES.filter((name) => !standard.has(name)).filter(
    (name) =>
      !(section as string).includes(`\`${name}`) && !(section as string).includes(`\`${name.split(".")[1] ?? ""}\``),
  );
  assert.deepEqual(missing, []);
});
