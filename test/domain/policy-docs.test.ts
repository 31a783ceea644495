/** Everything that docs/policies.md shows works as it says. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { compileCondition, MAX_COMPREHENSIONS, MAX_DEPTH, MAX_LENGTH, MAX_NESTING, MAX_STEPS } from "../../src/domain/policy/condition.ts";
import { MAX_PATTERN } from "../../src/domain/policy/cel.ts";
import { parsePolicies, parsePolicyTests } from "../../src/domain/policy/parse.ts";
import { RuleSchema } from "../../src/domain/policy/schema.ts";
import { runPolicyTest } from "../../src/domain/policy/testing.ts";

const page = readFileSync(new URL("../../docs/policies.md", import.meta.url), "utf8");
const blocks = (kind: string): string[] => [...page.matchAll(/^```(.*)\n([^]*?)^```$/gm)].filter(([, info]) => info === kind).map(([, , body]) => body as string);
const policies = blocks("yaml policy").flatMap((text) => {
  const { documents, faults } = parsePolicies(text, "docs/policies.md");
  assert.deepEqual(faults, []);
  return documents;
});

test("the policies of the page parse", () => {
  assert.deepEqual(policies.map(({ policy }) => policy), ["payments"]);
});

test("the tests of the page hold", () => {
  const [text, ...more] = blocks("yaml test");
  assert.equal(more.length, 0);
  const { tests, faults } = parsePolicyTests(text as string, "docs/policies.md");
  assert.deepEqual(faults, []);
  const results = tests.flatMap((one) => runPolicyTest(policies, one));
  assert.equal(results.length, 3);
  assert.deepEqual(results.filter(({ failure }) => failure !== null), []);
});

test("the conditions of the page compile", () => {
  const lines = blocks("cel").flatMap((text) => text.trim().split("\n"));
  assert.ok(lines.length >= 10);
  for (const line of lines) {
    const compiled = compileCondition(line);
    assert.ok(compiled.ok, `${line}: ${compiled.ok ? "" : compiled.message}`);
  }
});

test("the page has every key of a rule and the limits of the code", () => {
  for (const key of Object.keys(RuleSchema.properties)) {
    if (key !== "description") assert.match(page, new RegExp(`\`${key}[\`.]`), key);
  }
  const number = (n: number): string => n.toLocaleString("en-US");
  assert.ok(page.includes(`${number(MAX_LENGTH)} characters, ${MAX_DEPTH} levels,\n${MAX_COMPREHENSIONS} comprehensions`));
  assert.equal(MAX_NESTING, 2);
  assert.ok(page.includes(`most ${MAX_PATTERN} instructions`));
  assert.ok(page.includes(`${number(MAX_STEPS)} steps`));
});
