/** What the editor of policies suggests at a position, and how it groups a dry run. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { completeAt, type TextKind, type CompletionWords } from "../../../../plugins/policies/page/completions.ts";
import { groupByCause } from "../../../../plugins/policies/page/dry-run-groups.ts";
import { listFunctions, listNamedValues, listVariables } from "../../../../src/domain/policy/check/expression-names.ts";
import { PolicySchema, PolicyTestSchema } from "../../../../src/domain/policy/parse/policy-schema.ts";

const WORDS: CompletionWords = {
  vocabulary: {
    schema: PolicySchema as unknown as Record<string, unknown>,
    test_schema: PolicyTestSchema as unknown as Record<string, unknown>,
    variables: listVariables(),
    functions: listFunctions().map(({ name, method, arity }) => ({ name, method, arity: [...arity] })),
    tools: [{ tool: "stripe", operation: "refund", params: [] }],
    channels: ["ops"],
    reviewers: [],
    fact_sources: [{ name: "crm", inputs: ["id"] }],
  },
  variables: [
    { name: "most", type: "an int" },
    ...listNamedValues({ history: { per: "session", tool: "inbox", window: "24h", max: 50 } }),
  ],
  tools: [{ tool: "wiki", operation: null, params: [{ name: "title", type: "a string" }] }],
};

/** Returns the labels at `|`, and the text that they replace. */
function suggested(marked: string, kind?: TextKind): { labels: string[]; typed: string } | null {
  const position = marked.indexOf("|");
  const text = marked.replace("|", "");
  const found = completeAt(text, position, WORDS, kind);
  if (found === null) return null;
  return { labels: found.suggestions.map(({ label }) => label), typed: text.slice(found.from, position) };
}

const RULE = "policy: x\nrules:\n  - name: a\n    tool: wiki\n";

const CASE = "now: 2026-01-01T00:00:00Z\ncases:\n  - name: a\n";

describe("completion in the tests of a policy", () => {
  for (const [where, marked, some, none] of [
    ["a key of the file", "ca|", "cases", "rules"],
    ["a key of a case", `${CASE}    exp|`, "expect", "effect"],
    ["a key of the action", `${CASE}    action:\n      too|`, "tool", "expect"],
    ["a key of the expectation in braces", `${CASE}    expect: { eff|`, "effect", "tool"],
    ["an effect", `${CASE}    expect: { effect: den|`, "deny", "stripe"],
    ["a tool", `${CASE}    action: { tool: st|`, "stripe", "deny"],
  ] as const)
    it(`suggests ${where}`, () => {
      const labels = suggested(marked, "tests")?.labels ?? [];
      assert.ok(labels.includes(some), `${some} is not in ${JSON.stringify(labels)}`);
      assert.ok(!labels.includes(none), none);
    });

  it("suggests no names of conditions in a parameter that is named like one", () =>
    assert.equal(suggested(`${CASE}    action: { params: { sum: mo|`, "tests"), null));
});

describe("completion in a policy", () => {
  for (const [where, marked, some, none, typed] of [
    ["a key of the policy", "pol|", "policy", "effect", "pol"],
    ["a key of a rule", `${RULE}    eff|`, "effect", "rules", "eff"],
    ["the first key of a rule", "rules:\n  - na|", "name", "policy", "na"],
    ["a list in the column of its key", "rules:\n- name: a\n  eff|", "effect", "rules", "eff"],
    ["a key after a rule", `${RULE}    effect: allow\nli|`, "limits", "effect", "li"],
    ["a key of the approval", `${RULE}    approval:\n      quo|`, "quorum", "effect", "quo"],
    ["a key in braces", "rules:\n  - { name: a, eff|", "effect", "policy", "eff"],
    ["a key in the braces of a key", `${RULE}    approval: { expi|`, "expires_in", "effect", "expi"],
    ["a key of a fact", "policy: x\nfacts:\n  account:\n    sou|", "source", "effect", "sou"],
    ["a fact source", "policy: x\nfacts:\n  account:\n    source: c|", "crm", "stripe", "c"],
    ["a value", `${RULE}    effect: al|`, "allow", "enforce", "al"],
    ["a value after a condition", "rules:\n  - { name: a, when: size(params) < 1, effect: de|", "deny", "most", "de"],
    ["a tool", "rules:\n  - name: a\n    tool: |", "stripe", "allow", ""],
    ["a declared tool", "rules:\n  - name: a\n    tool: w|", "wiki", "allow", "w"],
    ["a channel", `${RULE}    approval:\n      notify: [o|`, "ops", "stripe", "o"],
    ["a name in a condition", `${RULE}    when: mo|`, "most", "effect", "mo"],
    ["a function in a condition", `${RULE}    when: siz|`, "size", "effect", "siz"],
    ["a declared parameter", `${RULE}    when: params.ti|`, "params.title", "principal.owner", "params.ti"],
    ["a member of a variable", `${RULE}    when: principal.o|`, "principal.owner", "most", "principal.o"],
    ["a method", `${RULE}    when: params.title.sta|`, "params.title.startsWith", "most", "params.title.sta"],
    ["an optional member", `${RULE}    when: params.?ti|`, "params.?title", "params.?startsWith", "params.?ti"],
    ["the declared history", `${RULE}    when: his|`, "history", "history[].status", "his"],
    ["a macro of the history", `${RULE}    when: history.an|`, "history.any", "history.startsWi", "history.an"],
    ["a member of a past action", `${RULE}    when: history.any(h, h.sta|`, "h.status", "history[].status", "h.sta"],
    ["no past action elsewhere", `${RULE}    when: h.sta|`, "h.startsWith", "h.status", "h.sta"],
    ["a folded condition", `${RULE}    when: >-\n      mo|`, "most", "effect", "mo"],
    ["a condition in braces", "rules:\n  - { name: a, when: mo|", "most", "effect", "mo"],
  ] as const)
    it(`suggests ${where}`, () => {
      const found = suggested(marked);
      assert.ok(found?.labels.includes(some) === true, `${some} is not in ${JSON.stringify(found?.labels)}`);
      assert.ok(!found.labels.includes(none), none);
      assert.equal(found.typed, typed);
    });

  it("explains the history by its owner and window", () => {
    const text = `${RULE}    when: his`;
    const found = completeAt(text, text.length, WORDS)?.suggestions.find(({ label }) => label === "history");
    assert.equal(found?.detail, "past actions with the same session, 24h, at most 50");
  });

  it("suggests nothing in a comment, and nothing where anything can be written", () => {
    assert.deepEqual([suggested("# pol|"), suggested("description: pol|")], [null, null]);
  });
});

describe("a dry run", () => {
  it("groups actions by cause, those that change first", () => {
    const action = (agent_id: string) => ({ agent_id, tool: "t", operation: "o" });
    const cause = (effect: string, rule: string | null) => ({ effect, policy: "p", rule, reason: `because ${rule}` });
    const same = { current: cause("deny", null), candidate: cause("deny", null), overruled: false, changed: false };
    const freed = { current: cause("deny", null), candidate: cause("allow", "a"), overruled: false, changed: true };
    const failing = { ...freed, candidate: { ...cause("deny", "b"), reason: "no such key" }, changed: true };
    const groups = groupByCause(["1", "2", "3", "4", "5", "6"].map(action), [same, same, same, failing, freed, freed]);
    assert.deepEqual(
      groups.map(({ candidate, actions }) => [candidate.reason, actions.map(({ agent_id }) => agent_id)]),
      [
        ["because a", ["5", "6"]],
        ["no such key", ["4"]],
        ["because null", ["1", "2", "3"]],
      ],
    );
  });
});
