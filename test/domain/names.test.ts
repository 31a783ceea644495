/** Which texts are valid names, and when two names are the same. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { findSelfRelation } from "../../src/domain/approval.ts";
import { foldCharacter, foldName, findNameFault, sameName } from "../../src/domain/names.ts";
import { compilePolicySet, PolicyCompileError } from "../../src/domain/policy/compile/compile.ts";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import { Evaluation } from "../../src/domain/policy/decide/evaluation.ts";
import { explain } from "../../src/domain/policy/decide/explain.ts";
import { findMatchedLimits } from "../../src/domain/policy/decide/limit-facts.ts";
import { parsePolicies } from "../../src/domain/policy/parse/parse.ts";
import { matchesAnyName } from "../../src/domain/policy/compile/name-patterns.ts";
import type { PolicySetDocument } from "../../src/domain/policy/policy-types.ts";
import { action, compile, FACTS, NOW, policy, rule } from "../support/policy.ts";

test("a name with look-alike characters is rejected", () => {
  for (const name of ["bash", "crm.get_user", "Support Bot", "größe", "検索", "отдел", "spiffe://a/b", "🦊"])
    assert.equal(findNameFault(name), null, name);
  for (const name of ["ba\u200bsh", "bash\u0000", "\u202ehsab", "ba\u00adsh", "a\u2800b", "a\u00a0b", "a\u{e0061}"])
    assert.match(findNameFault(name) ?? "", /invisible character/, JSON.stringify(name));
  for (const name of [" bash", "bash "]) assert.match(findNameFault(name) ?? "", /space/);
  for (const name of ["ｂash", "ﬁle", "gro\u0308ße", "\u212a", "ſh"])
    assert.match(findNameFault(name) ?? "", /NFKC/, JSON.stringify(name));
  // Cyrillic \u0435, \u0441 and \u0430, Greek \u03bf.
  for (const name of ["strip\u0435", "stripe.\u0441reate", "\u0430dmin", "b\u03bft", "get_us\u0435r"])
    assert.match(findNameFault(name) ?? "", /mixes letters of/, JSON.stringify(name));
  for (const name of ["отдел-api", "検索API", "한국어bot", "größe2", "café", "μετρο"])
    assert.equal(findNameFault(name), null, name);
});

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
/** All assigned characters except surrogates. The others have no case and no other form. */
const CHARACTERS = Array.from({ length: 0x110000 }, (_, point) => String.fromCodePoint(point)).filter((character) =>
  /[^\p{Cn}\p{Cs}]/u.test(character),
);

test("names are compared without regard to case, and the folded form is stable", () => {
  for (const [a, b] of [
    ["Bash", "bASH"],
    ["ΣΑΣ", "σας"],
    ["GRÖẞE", "größe"],
    ["ＢＡＳＨ", "bash"],
    ["𐐀", "𐐨"],
    ["ǅ", "ǆ"],
  ] as const)
    assert.ok(sameName(a, b), `${a} ${b}`);
  for (const [a, b] of [
    ["bash", "bosh"],
    ["аdmin", "admin"],
    ["a", "a "],
  ] as const)
    assert.ok(!sameName(a, b), `${a} ${b}`);
  for (const character of CHARACTERS) {
    const folded = foldName(character);
    if (folded === character) continue;
    if (foldName(folded) !== folded) assert.fail(`${escaped(character)} folds twice`);
    // A valid name keeps its length when folded, so that `?` counts the characters that the agent sent.
    if (Array.from(folded).length !== 1 && findNameFault(character) === null)
      assert.fail(`${escaped(character)} becomes ${Array.from(folded).length}`);
  }
});

test("two characters are equal exactly if their simple case foldings are", () => {
  // The flags iu of a regular expression compare by simple case folding.
  const cased = CHARACTERS.filter(
    (character) =>
      foldCharacter(character) !== character ||
      /[\p{Changes_When_Casefolded}\p{Changes_When_Casemapped}]/u.test(character),
  );
  const outside = new RegExp(`[${cased.map(escaped).join("")}]`, "iu");
  const known = new Set([...cased, ...cased.map(foldCharacter)]);
  for (const character of CHARACTERS)
    if (!known.has(character) && outside.test(character)) assert.fail(`${escaped(character)} has a case`);
  const foldings = [...new Set(Array.from(known, foldCharacter))];
  const indexes = new Map(foldings.map((folding, i) => [folding, i]));
  // Match half of the foldings, in turn. Two different foldings are once in different halves.
  for (let bit = 1; bit < foldings.length; bit *= 2) {
    const isInHalf = (folding: string): boolean => ((indexes.get(folding) as number) & bit) !== 0;
    const half = new RegExp(`[${foldings.filter(isInHalf).map(escaped).join("")}]`, "iu");
    for (const character of known)
      if (half.test(character) !== isInHalf(foldCharacter(character)))
        assert.fail(`${escaped(character)} does not fold to ${escaped(foldCharacter(character))}`);
  }
  assert.ok(foldings.length > 1_400);
  for (const folding of foldings) assert.equal(foldCharacter(folding), folding);
});

test("an i without a dot is another name, for rules, keys, agents and owners", () => {
  const set = compile(policy("p", [rule("no", "deny", { tool: "kube.risk" }), rule("rest", "allow")]));
  assert.equal(decide(set, action("kube.rısk", "x"), FACTS, NOW).rule, "rest");
  assert.equal(decide(set, action("KUBE.RISK", "x"), FACTS, NOW).rule, "no");
  for (const [a, b] of [
    ["wrıter", "writer"],
    ["WRİTER", "writer"],
    ["WRITER", "wrıter"],
    ["gross", "groß"],
  ] as const)
    assert.ok(!sameName(a, b), `${a} ${b}`);
});

const SHELL = policy("p", [
  rule("no", "deny", { tool: "bash", operation: "Run*" }),
  rule("ok", "allow", { tool: ["Bash", "c?rl"], agent: "Support-*" }),
]);

test("policies match names without regard to case", () => {
  const set = compile(SHELL);
  const decided = (tool: string, operation: string, agent = "support-1"): string | null =>
    decide(set, action(tool, operation, {}, agent), FACTS, NOW).rule;
  assert.equal(decided("BASH", "RUN_all"), "no");
  assert.equal(decided("bAsH", "get", "SUPPORT-1"), "ok");
  assert.equal(decided("CURL", "get"), "ok");
  assert.equal(decided("curll", "get"), null);
  const [explained] = explain(set, action("BASH", "run"), FACTS, NOW).policies;
  assert.deepEqual(explained?.rules[0]?.matchers[0], {
    field: "tool",
    patterns: ["bash"],
    value: "BASH",
    matches: true,
  });
});

test("a rule for one spelling of a tool is found once for every other spelling", () => {
  const set = compile(policy("p", [rule("a", "allow", { tool: ["Bash", "BASH", "bash"] })]));
  assert.equal(set.byTool.get("bash")?.length, 1);
  assert.equal(decide(set, action("baSH", "run"), FACTS, NOW).effect, "allow");
});

test("a policy can be case-sensitive", () => {
  const set = compile({ ...SHELL, case_sensitive: true }, policy("other", [rule("x", "deny", { tool: "nothing" })]));
  assert.equal(decide(set, action("BASH", "Run"), FACTS, NOW).reason_code, "NO_MATCHING_RULE");
  assert.equal(decide(set, action("bash", "run"), FACTS, NOW).reason_code, "NO_MATCHING_RULE");
  assert.equal(decide(set, action("bash", "Run"), FACTS, NOW).rule, "no");
  assert.equal(decide(set, action("Bash", "x", {}, "Support-1"), FACTS, NOW).rule, "ok");
});

test("`?` matches one character, even one of two UTF-16 units", () => {
  const set = compile(policy("p", [rule("one", "deny", { tool: "a?b" }), rule("rest", "allow")]));
  assert.equal(decide(set, action("a🦊b", "x"), FACTS, NOW).rule, "one");
  assert.equal(decide(set, action("a🦊🦊b", "x"), FACTS, NOW).rule, "rest");
});

test("a tool that extends the name of a tool in a policy is denied, unless a policy names it", () => {
  const set = compile(
    policy("p", [
      rule("no", "deny", { tool: "Stripe" }),
      rule("yes", "allow", { tool: ["stripe:read", "billing/*"] }),
      rule("rest", "allow"),
    ]),
  );
  const decided = (tool: string) => decide(set, action(tool, "x"), FACTS, NOW);
  for (const tool of [
    "stripe/",
    "stripe:refund",
    "./stripe",
    "../stripe",
    "/stripe",
    "STRIPE:",
    "stripe//refund",
    "stripe\\refund",
    "stripe#x",
    "stripe@2",
    "stripe?x",
    "stripe refund",
    "stripe.",
    ".stripe",
    "stripe;x",
    ":stripe",
    "x/../stripe",
    "x\\..\\stripe",
    "x/y/../../stripe/refund",
    "%73tripe",
    "%2fstripe",
    "%2573tripe",
    "x%2f%2e%2e%2fSTRIPE",
  ]) {
    const { effect, reason_code, reason } = decided(tool);
    assert.deepEqual([effect, reason_code], ["deny", "NO_MATCHING_RULE"], tool);
    assert.match(reason, /can be read as .?stripe/);
  }
  for (const tool of [
    "stripe:read",
    "billing/x",
    "stripes",
    "stripe-test",
    "stripe.refund",
    "other",
    "other/stripe",
    "a:b",
  ])
    assert.equal(decided(tool).effect, "allow", tool);
  assert.equal(decided("stripe").rule, "no");
});

test("a glob that does not begin with a name and a separator does not name what extends the name", () => {
  for (const glob of ["s*", "s*/", "stripe*", "stripe?", "*/", "*/*", "?tripe/", "*stripe*", "*", "st*:*"]) {
    const set = compile(policy("p", [rule("no", "deny", { tool: "stripe" }), rule("yes", "allow", { tool: glob })]));
    for (const tool of ["stripe/", "Stripe:refund", "./stripe", "stripe/refund", "stripe%2f"])
      assert.equal(decide(set, action(tool, "x"), FACTS, NOW).effect, "deny", `${tool} with ${glob}`);
  }
  const set = compile(
    policy("p", [rule("no", "deny", { tool: "stripe" }), rule("yes", "allow", { tool: ["s*", "stripe/*", "./s*"] })]),
  );
  for (const tool of ["stripe/refund", "Stripe/", "store/x", "st"])
    assert.equal(decide(set, action(tool, "x"), FACTS, NOW).effect, "allow", tool);
  assert.equal(decide(set, action("./stripe", "x"), FACTS, NOW).effect, "deny");
});

test("an operation that extends the name of an operation in a policy is denied, unless a policy names it", () => {
  const set = compile(
    policy("p", [
      rule("no", "deny", { operation: ["refund", "pull"] }),
      rule("yes", "allow", { operation: ["refund:list", "pull/*"] }),
      rule("rest", "allow"),
    ]),
  );
  const decided = (operation: string) => decide(set, action("stripe", operation), FACTS, NOW);
  for (const operation of ["refund/", "./refund", "Refund:now", "refund?x", "refund.", "refund\\x", "refund x"])
    assert.match(decided(operation).reason, /^no policy names the operation .* can be read as .?refund/, operation);
  for (const operation of ["refund:list", "pull/1", "refunds", "prompts/get"])
    assert.equal(decided(operation).effect, "allow", operation);
});

test("a limit per agent uses one name for all spellings, including the spelling of the key's agent", () => {
  const set = compile(policy("p", [], { limits: [{ name: "l", per: "principal.agent_id", count: 1, window: "1h" }] }));
  const subjects = ["Support-Bot", "support-bot"].map((agent_id) => {
    const facts = { ...FACTS, principal: { ...FACTS.principal, agent_id } };
    return findMatchedLimits(new Evaluation(set, action("bash", "x"), facts, NOW))[0]?.subject;
  });
  assert.deepEqual(subjects, ["support-bot", "support-bot"]);
});

test("a policy set in another version's format is rejected", () => {
  const format = "assent-policy-set/99" as PolicySetDocument["format"];
  assert.throws(() => compilePolicySet({ format, policies: [] }), /has the format "assent-policy-set\/99"/);
});

test("a limit per agent counts all spellings of a name together, and separately in a case-sensitive policy", () => {
  const subjectIn =
    (more: object) =>
    (agent: string): string | undefined => {
      const limits = [{ name: "l", per: "agent + '/' + tool", count: 3, window: "1h" }];
      const set = compile(policy("p", [], { limits, ...more }));
      return findMatchedLimits(new Evaluation(set, action("Pay", "x", {}, agent), FACTS, NOW))[0]?.subject;
    };
  const folded = subjectIn({});
  assert.equal(folded("Support-Bot"), "support-bot/pay");
  assert.equal(folded("SUPPORT-BOT"), folded("support-bot"));
  const written = subjectIn({ case_sensitive: true });
  assert.equal(written("Support-Bot"), "Support-Bot/Pay");
  assert.equal(written("SUPPORT-BOT"), "SUPPORT-BOT/Pay");
});

test("an agent's allowed tools are compared without regard to case", () => {
  const facts = { ...FACTS, agent: { suspended: false, allowed_tools: ["Bash", "crm.*"] } };
  const set = compile(policy("p", [rule("all", "allow")]));
  assert.equal(decide(set, action("bash", "x"), facts, NOW).effect, "allow");
  assert.equal(decide(set, action("CRM.get", "x"), facts, NOW).effect, "allow");
  assert.equal(decide(set, action("curl", "x"), facts, NOW).reason_code, "TOOL_NOT_ALLOWED");
  assert.ok(matchesAnyName(["Support-*"], "support-1"));
});

test("a pattern that no name can match is a fault with a location", () => {
  const text = `policy: p
applies_to: { tools: ["ok", "ｂash"] }
rules:
  - name: r
    tool: [bash, "ba\\u200bsh"]
    effect: deny
`;
  const { faults } = parsePolicies(text, "p.yaml");
  assert.deepEqual(
    faults.map(({ line, column }) => [line, column]),
    [
      [2, 29],
      [5, 18],
    ],
  );
  assert.match(faults[1]?.message ?? "", /rules\.0\.tool\.1: "ba\[U\+200B\]sh" contains an invisible character/);
  assert.throws(
    () => compile(policy("p", [rule("r", "deny", { operation: "ﬁle" })])),
    (error) => error instanceof PolicyCompileError && error.faults[0]?.rule === "r",
  );
});

test("another spelling of the agent's id is still the agent that cannot approve itself", () => {
  const submitter = { key_id: "1", agent_id: null, owner: null };
  assert.equal(findSelfRelation(submitter, "Bot", { key_id: "2", agent_id: "bot", owner: null }), "same_agent");
  assert.equal(findSelfRelation(submitter, "Bot", { key_id: "2", agent_id: "bots", owner: null }), null);
});
