/** The tests of the default policies and the packs pin their numbers: changing one fails a test. */
import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import type { PolicyTest } from "../../src/domain/policy/parse/parse.ts";
import { runPolicyTest } from "../../src/domain/policy/test/run-tests.ts";
import type { PolicyDocument, RuleDocument } from "../../src/domain/policy/policy-types.ts";
import { checkPolicyFolder } from "../../src/policies/folder.ts";
import { ROOT } from "../support/runtimes.ts";

interface Mutation {
  /** Such as `small refunds: 100 → 101`. */
  name: string;
  policy: PolicyDocument;
}

/** All texts, and numbers that a condition compares with something, such as the size of a text or list. */
const TOKENS =
  /r?"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|((?:size\([^()]*(?:\[[^\]]*\])?\) *)?[<>=!]=? *)(\d+(?:\.\d+)?)/g;
/** Bounds of a length in a regular expression. */
const QUANTIFIER = /\{(\d+),(\d+)\}/g;

/**
 * Returns the condition with each number changed by one, in both directions.
 * @param withLengths also bounds of lengths, 0 and 1
 */
function changedConditions(when: string, withLengths: boolean): { when: string; change: string }[] {
  const replaced = (index: number, length: number, text: string): { when: string; change: string } => ({
    when: `${when.slice(0, index)}${text}${when.slice(index + length)}`,
    change: `${when.slice(Math.max(0, index - 40), index + length)} → ${text}`,
  });
  return [...when.matchAll(TOKENS)].flatMap(({ 0: token, 1: operator, 2: number, index }) => {
    if (operator !== undefined) {
      if (!withLengths && (operator.startsWith("size") || Number(number) <= 1)) return [];
      return [1, -1].map((by) => replaced(index, token.length, `${operator}${Number(number) + by}`));
    }
    const quantifiers = withLengths ? [...token.matchAll(QUANTIFIER)] : [];
    return quantifiers.flatMap(({ 0: bounds, 1: least, 2: most, index: at }) =>
      [
        [-1, 0],
        [1, 0],
        [0, -1],
        [0, 1],
      ].map(([down = 0, up = 0]) =>
        replaced(index + at, bounds.length, `{${Number(least) + down},${Number(most) + up}}`),
      ),
    );
  });
}

const REFUND = { tool: "stripe", operation: "refund", params: { amount: 1, currency: "USD" } };

/**
 * Returns the test of a parameter with a bounded length: such texts are too long for the test files of the policies.
 * @param beyond effect of a text whose length is out of bounds
 */
function lengthTest(
  policy: string,
  action: { tool: string; operation: string; params?: Record<string, unknown> },
  param: string,
  [least, most]: [number, number],
  beyond: "deny" | "require_approval",
): { test: PolicyTest } {
  const lengths = [least - 1, least, most, most + 1].filter((length) => length >= 0);
  const cases = lengths.map((length) => ({
    name: `${policy}: ${param} of ${length} characters`,
    action: { agent_id: "a", ...action, params: { ...action.params, [param]: "x".repeat(length) } },
    expect: { effect: length < least || length > most ? beyond : ("allow" as const) },
  }));
  return { test: { now: "2026-01-15T10:00:00Z", policies: [policy], cases } };
}

const MAIL = { tool: "email", operation: "send", params: { to: "grace@example.com" } };
const LENGTH_TESTS = [
  lengthTest("customer-data", { tool: "crm", operation: "search_customers" }, "query", [0, 200], "deny"),
  lengthTest("customer-data", { tool: "crm", operation: "get_customer" }, "id", [1, 100], "deny"),
  lengthTest("customer-data", { tool: "tickets", operation: "add_note" }, "text", [0, 5000], "require_approval"),
  lengthTest("customer-data", { tool: "crm", operation: "close_ticket" }, "ticket_id", [1, 100], "require_approval"),
  lengthTest("email", MAIL, "body", [0, 20_000], "require_approval"),
  lengthTest("payments", { tool: "stripe", operation: "get_charge" }, "charge", [1, 64], "deny"),
  lengthTest("payments", REFUND, "charge", [1, 64], "require_approval"),
  lengthTest("payments", REFUND, "reason", [0, 500], "require_approval"),
  lengthTest("reads", { tool: "monitoring", operation: "get_metrics" }, "service", [1, 100], "deny"),
];

function changedTerms({ quorum, expires_in, valid_for }: NonNullable<RuleDocument["approval"]>): object[] {
  return [
    ...(quorum === undefined ? [] : [{ quorum: quorum - 1 }, { quorum: quorum + 1 }]),
    ...(expires_in === undefined ? [] : [{ expires_in: "59s" }]),
    ...(valid_for === undefined ? [] : [{ valid_for: "59s" }]),
  ];
}

function mutationsOf(policy: PolicyDocument, withLengths: boolean): Mutation[] {
  return policy.rules.flatMap((rule, i) => {
    const replaced = (other: RuleDocument): PolicyDocument => ({ ...policy, rules: policy.rules.with(i, other) });
    const conditions = changedConditions(rule.when ?? "", withLengths).map(({ when, change }) => ({
      name: `${policy.policy}/${rule.name}: ${change}`,
      policy: replaced({ ...rule, when }),
    }));
    const terms = (rule.approval === undefined ? [] : changedTerms(rule.approval)).map((change) => ({
      name: `${policy.policy}/${rule.name}: ${JSON.stringify(change)}`,
      policy: replaced({ ...rule, approval: { ...rule.approval, ...change } }),
    }));
    return [...conditions, ...terms];
  });
}

/** Returns the mutations that no test of the folder notices. `lengthTests`: tests of lengths, which are mutated, too. */
async function unnoticed(folder: string, lengthTests: readonly { test: PolicyTest }[] = []): Promise<string[]> {
  const { documents, tests: ofFolder, faults } = await checkPolicyFolder(folder);
  assert.deepEqual(faults, []);
  const policies = documents.map(({ document }) => document);
  const failures = lengthTests.flatMap((entry) => runPolicyTest(policies, entry.test)).map(({ failure }) => failure);
  assert.deepEqual(
    failures.filter((failure) => failure !== null),
    [],
  );
  const tests = [...ofFolder, ...lengthTests];
  const notices = (mutated: PolicyDocument, { test: policyTest }: { test: PolicyTest }): boolean => {
    if (policyTest.policies !== undefined && !policyTest.policies.includes(mutated.policy)) return false;
    const set = policies.map((policy) => (policy.policy === mutated.policy ? mutated : policy));
    return runPolicyTest(set, policyTest).some(({ failure }) => failure !== null);
  };
  return policies
    .flatMap((policy) => mutationsOf(policy, lengthTests.length > 0))
    .filter(({ policy }) => !tests.some((entry) => notices(policy, entry)))
    .map(({ name }) => name);
}

test("a change of a number in the default policies fails a test", async () => {
  assert.deepEqual(await unnoticed(join(ROOT, "policies"), LENGTH_TESTS), []);
});

test("a change of a number in a pack fails a test", async () => {
  assert.deepEqual(await unnoticed(join(ROOT, "policies", "packs")), []);
});
