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

/** Numbers that a condition compares with something other than the length of a text or list, and all texts. */
const TOKENS =
  /r?"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|size\([^()]*(?:\[[^\]]*\])?\) *[<>=!]=? *\d+|([<>=!]=? *)(\d+(?:\.\d+)?)/g;

/** Returns the condition with each of these numbers changed by one, in both directions. */
function changedConditions(when: string): { when: string; change: string }[] {
  return [...when.matchAll(TOKENS)].flatMap(({ 0: token, 1: operator, 2: number, index }) =>
    operator === undefined || Number(number) <= 1
      ? []
      : [1, -1].map((by) => ({
          when: `${when.slice(0, index)}${operator}${Number(number) + by}${when.slice(index + token.length)}`,
          change: `${when.slice(Math.max(0, index - 40), index)}${token} → ${Number(number) + by}`,
        })),
  );
}

function changedTerms({ quorum, expires_in, valid_for }: NonNullable<RuleDocument["approval"]>): object[] {
  return [
    ...(quorum === undefined ? [] : [{ quorum: quorum - 1 }, { quorum: quorum + 1 }]),
    ...(expires_in === undefined ? [] : [{ expires_in: "59s" }]),
    ...(valid_for === undefined ? [] : [{ valid_for: "59s" }]),
  ];
}

function mutationsOf(policy: PolicyDocument): Mutation[] {
  return policy.rules.flatMap((rule, i) => {
    const replaced = (other: RuleDocument): PolicyDocument => ({ ...policy, rules: policy.rules.with(i, other) });
    const conditions = changedConditions(rule.when ?? "").map(({ when, change }) => ({
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

/** Returns the mutations that no test of the folder notices. */
async function unnoticed(folder: string): Promise<string[]> {
  const { documents, tests, faults } = await checkPolicyFolder(folder);
  assert.deepEqual(faults, []);
  const policies = documents.map(({ document }) => document);
  const notices = (mutated: PolicyDocument, { test: policyTest }: { test: PolicyTest }): boolean => {
    if (policyTest.policies !== undefined && !policyTest.policies.includes(mutated.policy)) return false;
    const set = policies.map((policy) => (policy.policy === mutated.policy ? mutated : policy));
    return runPolicyTest(set, policyTest).some(({ failure }) => failure !== null);
  };
  return policies
    .flatMap(mutationsOf)
    .filter(({ policy }) => !tests.some((entry) => notices(policy, entry)))
    .map(({ name }) => name);
}

test("a change of a number in the default policies fails a test", async () => {
  assert.deepEqual(await unnoticed(join(ROOT, "policies")), []);
});

test("a change of a number in a pack fails a test", async () => {
  assert.deepEqual(await unnoticed(join(ROOT, "policies", "packs")), []);
});
