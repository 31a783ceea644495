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
const TOKENS = /r?"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|((?:size\([^()]*(?:\[[^\]]*\])?\) *)?[<>=!]=? *)(\d+(?:\.\d+)?)/g;
/** Bounds of a length in a regular expression. */
const QUANTIFIER = /\{(\d+),(\d+)\}/g;

/**
 * Returns the condition with each number changed by one, in both directions.
 * @param all also 0 and 1, and bounds of lengths in regular expressions
 */
function changedConditions(when: string, all: boolean): { when: string; change: string }[] {
  const replaced = (index: number, length: number, text: string): { when: string; change: string } => ({
    when: `${when.slice(0, index)}${text}${when.slice(index + length)}`,
    change: `${when.slice(Math.max(0, index - 40), index + length)} → ${text}`,
  });
  return [...when.matchAll(TOKENS)].flatMap(({ 0: token, 1: operator, 2: number, index }) => {
    if (operator !== undefined) {
      if (!all && Number(number) <= 1) return [];
      return [1, -1].map((by) => replaced(index, token.length, `${operator}${Number(number) + by}`));
    }
    const quantifiers = all ? [...token.matchAll(QUANTIFIER)] : [];
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

type Effect = "allow" | "deny" | "require_approval";
/** By length: the effect, with the rule where another rule has the same effect. */
type Effects = Readonly<Record<number, Effect | readonly [Effect, string]>>;
type Submitted = { tool: string; operation: string; params?: Record<string, unknown> };

const [allow, deny, ask] = ["allow", "deny", "require_approval"] as const;
const text = (length: number): unknown => "x".repeat(length);
const name = (length: number): unknown => `Ada ${"x".repeat(length - 4)}`;
const items = (item: unknown) => (length: number) => Array.from({ length }, () => item);

/**
 * Returns the test of a parameter with a bounded length. Such texts and lists are too long for the test files of the policies.
 * @param effects the effect for each length
 */
function lengthTest(
  policy: string,
  action: Submitted,
  param: string,
  effects: Effects,
  valueOf: (length: number) => unknown = text,
): { test: PolicyTest } {
  const cases = Object.entries(effects).map(([length, effect]) => ({
    name: `${policy}: ${action.operation} with ${param} of length ${length}`,
    action: { agent_id: "a", ...action, params: { ...action.params, [param]: valueOf(Number(length)) } },
    expect: typeof effect === "string" ? { effect } : { effect: effect[0], rule: effect[1] },
  }));
  return { test: { now: "2026-01-15T10:00:00Z", policies: [policy], cases, scenarios: [] } };
}

const call = (tool: string, operation: string, params: Record<string, unknown> = {}): Submitted => ({
  tool,
  operation,
  params,
});

/** The tests of the default policies have the shorter texts. */
const DEFAULT_LENGTHS = [
  lengthTest("customer-data", call("tickets", "add_note"), "text", { 5000: allow, 5001: ask }),
  lengthTest("mcp", call("mcp.filesystem", "read_file"), "path", { 500: allow, 501: ask }, (length) =>
    "/".padEnd(length, "x"),
  ),
  lengthTest("email", call("email", "send", { to: "grace@example.com" }), "body", { 20000: allow, 20001: ask }),
];

const SEARCH = { query: "Ada Lovelace", limit: 1 };
const SELECT = { table: "orders", limit: 1 };
const MAIL = { to: ["grace@example.com"] };

const SHELL = call("shell", "run", { command: "as parsed", cwd: "/work/app", workspace: "/work/app" });
const parsed = (name: string, args: string[]) => ({
  version: 2,
  secrets: [],
  untracked: [],
  later: [],
  hosts: [],
  commands: [{ name, args, via: [] }],
  reads: [],
  writes: [],
  paths: [],
  unclear: [],
});

const PACK_LENGTHS = [
  lengthTest("coding-agents", SHELL, "parsed", { 1: ask, 2: allow }, (length) =>
    parsed("command", ["-v", "node"].slice(0, length)),
  ),
  lengthTest("coding-agents", call("web", "search"), "query", { 200: allow, 201: ask }),
  lengthTest("customer-data", call("crm", "export_customers", { limit: 1 }), "purpose", {
    9: deny,
    10: ask,
    500: ask,
    501: deny,
  }),
  lengthTest("customer-data", call("crm", "search_customers", { limit: 1 }), "query", { 200: allow, 201: ask }, name),
  lengthTest("customer-data", call("crm", "search_customers", SEARCH), "fields", { 50: allow, 51: ask }, items("name")),
  lengthTest("customer-data", call("crm", "get_customer", { id: 1 }), "fields", { 50: allow, 51: deny }, items("name")),
  lengthTest("customer-data", call("tickets", "add_note"), "text", { 5000: allow, 5001: ask }),
  lengthTest("customer-data", call("tickets", "add_note"), "tags", { 50: allow, 51: ask }, items("vip")),
  lengthTest("databases", call("postgres", "select_rows", SELECT), "columns", { 50: allow, 51: deny }, items("id")),
  lengthTest(
    "databases",
    call("postgres", "select_rows", { ...SELECT, columns: ["id"] }),
    "where",
    { 10: allow, 11: deny },
    (length) => Object.fromEntries(Array.from({ length }, (_, i) => [`c${i}`, 1])),
  ),
  lengthTest(
    "databases",
    call("postgres", "run_saved_query", { name: "orders_of_customer" }),
    "args",
    { 20: allow, 21: deny },
    items(1),
  ),
  lengthTest("databases", call("postgres", "query"), "sql", { 1000: ask, 1001: deny }, (length) =>
    "show ".padEnd(length, "x"),
  ),
  lengthTest("email", call("email", "search_messages"), "query", { 500: allow, 501: deny }),
  lengthTest("email", call("email", "create_draft"), "body", { 20000: allow, 20001: deny }),
  lengthTest("email", call("email", "create_draft"), "to", { 50: allow, 51: deny }, items("a@example.com")),
  lengthTest("email", call("email", "create_draft"), "to", { 100: allow, 101: deny }, (length) => [text(length)]),
  lengthTest(
    "email",
    call("email", "send"),
    "to",
    { 10: allow, 11: ask, 50: ask, 51: [deny, "malformed addresses"] },
    items("a@example.com"),
  ),
  lengthTest("email", call("email", "send"), "to", { 100: allow, 101: deny }, (length) => [
    "@example.com".padStart(length, "x"),
  ]),
  lengthTest("email", call("email", "send", MAIL), "subject", { 300: allow, 301: deny }),
  lengthTest("email", call("email", "send", MAIL), "body", { 20000: allow, 20001: deny }),
  lengthTest("git-hosting", call("github", "search_code"), "query", { 500: allow, 501: ask }),
  lengthTest(
    "git-hosting",
    call("github", "push_files", { branch: "agent/x" }),
    "files",
    { 50: allow, 51: ask },
    items("a.txt"),
  ),
  lengthTest("git-hosting", call("github", "create_comment"), "body", { 5000: allow, 5001: ask }),
  lengthTest("git-hosting", call("github", "add_labels"), "labels", { 20: allow, 21: ask }, items("bug")),
  lengthTest("git-hosting", call("github", "add_labels"), "labels", { 100: allow, 101: ask }, (length) => [
    text(length),
  ]),
  lengthTest("mcp", call("mcp.filesystem", "read_file"), "path", { 500: allow, 501: ask }, (length) =>
    "/".padEnd(length, "x"),
  ),
  lengthTest("mcp", call("mcp.git", "git_status"), "repo_path", { 500: allow, 501: ask }, (length) =>
    "/".padEnd(length, "x"),
  ),
  lengthTest("mcp", call("mcp.fetch", "fetch"), "url", { 300: allow, 301: ask }, (length) =>
    "https://docs.example.com/".padEnd(length, "x"),
  ),
  lengthTest("mcp", call("mcp.memory", "search_nodes"), "query", { 500: allow, 501: ask }),
  lengthTest("mcp", call("mcp.memory", "open_nodes"), "names", { 50: allow, 51: ask }, items("a")),
  lengthTest("mcp", call("mcp.memory", "open_nodes"), "names", { 200: allow, 201: ask }, (length) => [text(length)]),
  lengthTest("mcp", call("mcp.everything", "echo"), "message", { 1000: allow, 1001: ask }),
  lengthTest("payments", call("stripe", "add_note"), "note", { 5000: allow, 5001: deny }),
  lengthTest(
    "payments",
    call("stripe", "create_draft_invoice"),
    "lines",
    { 100: allow, 101: ask },
    items({ price: 1 }),
  ),
  lengthTest("payments", call("stripe", "refund", { amount: 1, currency: "USD", charge: "ch_1" }), "reason", {
    500: allow,
    501: ask,
  }),
  lengthTest("shell", call("shell", "run"), "command", { 200: allow, 201: ask, 500: ask, 501: deny }, (length) =>
    "ls ".padEnd(length, "x"),
  ),
];

function changedTerms({ quorum, expires_in, valid_for }: NonNullable<RuleDocument["approval"]>): object[] {
  return [
    ...(quorum === undefined ? [] : [{ quorum: quorum - 1 }, { quorum: quorum + 1 }]),
    ...(expires_in === undefined ? [] : [{ expires_in: "59s" }]),
    ...(valid_for === undefined ? [] : [{ valid_for: "59s" }]),
  ];
}

function mutationsOf(policy: PolicyDocument, all: boolean): Mutation[] {
  return policy.rules.flatMap((rule, i) => {
    const replaced = (other: RuleDocument): PolicyDocument => ({ ...policy, rules: policy.rules.with(i, other) });
    const conditions = changedConditions(rule.when ?? "", all).map(({ when, change }) => ({
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

/**
 * Returns the mutations that no test of the folder notices.
 * @param lengthTests tests in addition to those of the folder
 */
async function unnoticed(
  folder: string,
  lengthTests: readonly { test: PolicyTest }[],
  all: boolean,
): Promise<string[]> {
  const { documents, tests: ofFolder, faults } = await checkPolicyFolder(folder);
  assert.deepEqual(faults, []);
  const policies = documents.map(({ document }) => document);
  const results = lengthTests.flatMap((entry) => runPolicyTest(policies, entry.test));
  assert.deepEqual(
    results.filter(({ failure }) => failure !== null).map(({ name, failure }) => `${name}: ${failure}`),
    [],
  );
  // The short ones first, so that most mutations are noticed early.
  const tests = [...lengthTests, ...ofFolder];
  const notices = (mutated: PolicyDocument, { test: policyTest }: { test: PolicyTest }): boolean => {
    if (policyTest.policies !== undefined && !policyTest.policies.includes(mutated.policy)) return false;
    const set = policies.map((policy) => (policy.policy === mutated.policy ? mutated : policy));
    return runPolicyTest(set, policyTest).some(({ failure }) => failure !== null);
  };
  return policies
    .flatMap((policy) => mutationsOf(policy, all))
    .filter(({ policy }) => !tests.some((entry) => notices(policy, entry)))
    .map(({ name }) => name);
}

test("a change of a number in the default policies fails a test", async () => {
  assert.deepEqual(await unnoticed(join(ROOT, "policies"), DEFAULT_LENGTHS, true), []);
});

test("a change of a number in a pack fails a test", async () => {
  assert.deepEqual(await unnoticed(join(ROOT, "policies", "packs"), PACK_LENGTHS, false), []);
});
