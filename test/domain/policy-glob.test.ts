import assert from "node:assert/strict";
import test from "node:test";
import {
  doesGlobInclude,
  doGlobsOverlap,
  isGlob,
  matchesAny,
  matchGlob,
} from "../../src/domain/policy/compile/glob.ts";

const TABLE: [pattern: string, text: string, matches: boolean][] = [
  ["stripe", "stripe", true],
  ["stripe", "Stripe", false],
  ["stripe", "stripe2", false],
  ["", "", true],
  ["", "x", false],
  ["*", "", true],
  ["*", "any.thing/at all\n", true],
  ["billing.*", "billing.eu.refunds", true],
  ["billing.*", "billing.", true],
  ["billing.*", "billing", false],
  ["*.read", "a.b.read", true],
  ["get*", "forget", false],
  ["a*b*c", "axxbxxc", true],
  ["a*b*c", "axxcxxb", false],
  ["a**b", "ab", true],
  ["?", "", false],
  ["?", "x", true],
  ["?", "xy", false],
  ["a?c*", "abcdef", true],
  ["*?", "", false],
  ["*?", "ab", true],
  [".", "x", false],
  ["[ab]", "a", false],
  ["[ab]", "[ab]", true],
  ["a+", "aa", false],
  ["(a|b)", "a", false],
];

test("globs", () => {
  for (const [pattern, text, expected] of TABLE)
    assert.equal(matchGlob(pattern, text), expected, `${JSON.stringify(pattern)} against ${JSON.stringify(text)}`);
});

test("a list matches when one of its globs does", () => {
  assert.equal(matchesAny(["crm", "bill?ng"], "billing"), true);
  assert.equal(matchesAny(["crm", "bill?ng"], "biling"), false);
  assert.equal(matchesAny([], "crm"), false);
  assert.equal(isGlob("a.b"), false);
});

test("globs agree with their regular expression on every short text", () => {
  const patterns = texts("a*?", 4);
  for (const pattern of patterns) {
    const regex = new RegExp(`^${pattern.replaceAll("*", "[^]*").replaceAll("?", "[^]")}$`);
    for (const text of texts("ab", 4))
      assert.equal(matchGlob(pattern, text), regex.test(text), `${pattern} against ${text}`);
  }
});

test("many stars do not multiply", () => {
  // A backtracking matcher would need more than 10^20 comparisons here.
  assert.equal(matchGlob(`${"*a".repeat(60)}b`, "a".repeat(250)), false);
});

function texts(alphabet: string, longest: number): string[] {
  let all = [""];
  let last = [""];
  for (let i = 0; i < longest; i++) {
    last = last.flatMap((head) => alphabet.split("").map((c) => head + c));
    all = [...all, ...last];
  }
  return all;
}

test("two globs overlap, or one includes the other", () => {
  const pairs: [outer: string, inner: string, overlap: boolean, includes: boolean][] = [
    ["*", "stripe", true, true],
    ["stripe", "*", true, false],
    ["support-*", "support-bot", true, true],
    ["support-*", "billing-*", false, false],
    ["support-*", "*-bot", true, false],
    ["*-bot", "support-*-bot", true, true],
    ["a?c", "abc", true, true],
    ["a?c", "a*c", true, false],
    ["a*c", "a?c", true, true],
    ["a?", "a??", false, false],
    ["*a*", "b*a", true, true],
    ["", "*", true, false],
    ["", "?", false, false],
  ];
  for (const [outer, inner, overlap, includes] of pairs) {
    assert.equal(doGlobsOverlap(outer, inner), overlap, `${outer} ${inner}`);
    assert.equal(doGlobsOverlap(inner, outer), overlap, `${inner} ${outer}`);
    assert.equal(doesGlobInclude(outer, inner), includes, `${outer} ${inner}`);
  }
});
