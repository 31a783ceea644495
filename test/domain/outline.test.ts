/** The part of a request that people see first: bounded, counted, and not misleading. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LINE_LENGTH, MAX_LINES, outline, outlineLines, type Outline } from "../../src/domain/outline.ts";
import { renderMarkedText, markText } from "../../src/domain/visible-text.ts";

/** Visible and folded lines of an outline. */
function count(node: Outline): { drawn: number; folded: number } {
  if (node.kind === "value" || node.kind === "empty") return { drawn: 1, folded: 0 };
  if (node.kind !== "members") return { drawn: node.text.split("\n").length, folded: node.more };
  const sum = { drawn: 0, folded: node.more };
  for (const { value } of node.members) {
    const inner = count(value);
    sum.drawn += inner.drawn + (value.kind === "members" ? 1 : 0);
    sum.folded += inner.folded;
  }
  return sum;
}
const numbered = (n: number): string => Array.from({ length: n }, (_, i) => `line ${i + 1}`).join("\n");

describe("an outline", () => {
  it("draws a list of 30,000 items in six lines and counts the others", () => {
    const value = { to: Array.from({ length: 30_000 }, (_, i) => i), amount: 5 };
    assert.deepEqual(outlineLines(value), [
      "to: 30,000 items",
      ...["1. 0", "2. 1", "3. 2", "4. 3", "5. 4"].map((line) => `  ${line}`),
      "  … 29,995 more lines",
      "amount: 5",
    ]);
  });

  it("no text can push a member out of view", () => {
    const value = { note: numbered(60), amount: 5000, destination: "acct_1" };
    assert.deepEqual(outlineLines(value), [
      "note:",
      ...numbered(6)
        .split("\n")
        .map((line) => `  | ${line}`),
      "  … 54 more lines",
      "amount: 5000",
      "destination: acct_1",
    ]);
    // A single long line has the same limit.
    const long = outline({ note: "x".repeat(60_000), amount: 5 });
    assert.deepEqual(long.kind === "members" && long.members[0]?.value, {
      kind: "text",
      quoted: false,
      text: "x".repeat(6 * LINE_LENGTH),
      more: 594,
    });
  });

  it("gives every member one line before any member gets a second", () => {
    const value = Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`note${i}`, numbered(9)]));
    const drawn = outline(value, { lines: 6 });
    assert.equal(drawn.kind === "members" && drawn.members.length, 5);
    assert.deepEqual(count(drawn), { drawn: 6, folded: 39 });
  });

  it("shows both recipients of an e-mail, and their number if they are folded", () => {
    const value = { subject: "hello", to: ["ada@example.com", "eve@example.net"], body: numbered(40) };
    assert.deepEqual(outlineLines(value, { lines: 6 }).slice(0, 4), [
      "subject: hello",
      "to: 2 items",
      "  1. ada@example.com",
      "  2. eve@example.net",
    ]);
    assert.ok(outlineLines({ to: value.to, a: 1, b: 2 }, { lines: 3 }).includes("to: 2 items"));
    assert.ok(outlineLines({ to: value.to, a: 1, b: 2 }, { lines: 3 }).includes("  … 2 more lines"));
  });

  it("shows short members completely before long members get more lines", () => {
    const value = { note: numbered(60), list: Array(100).fill(1), to: ["ada@example.com", "eve@example.net"] };
    const lines = outlineLines(value, { lines: 6, each: 3 });
    for (const line of ["  1. ada@example.com", "  2. eve@example.net"]) assert.ok(lines.includes(line), line);
  });

  it("puts the members that a policy names first, at every level", () => {
    const value = { note: numbered(60), order: { text: numbered(9), total: 5 }, "a/b": 1, amount: 5000 };
    const first = ["/params/amount", "/params/order/total", "/params/a~1b"];
    const drawn = outline(value, { root: "/params", first, lines: 6 });
    assert.deepEqual(drawn.kind === "members" && drawn.members.map(({ name }) => name), [
      "amount",
      "order",
      "a/b",
      "note",
    ]);
    assert.deepEqual(outlineLines(value, { root: "/params", first, lines: 6 }).slice(0, 3), [
      "amount: 5000",
      "order: 2 members",
      "  total: 5",
    ]);
  });

  it("is bounded for any nesting, and for any number of unfolding steps", () => {
    let nested: unknown = "end";
    for (let i = 0; i < 60; i++) nested = { a: nested, b: Array.from({ length: 200 }, () => ({ c: [1, 2, 3] })) };
    for (const lines of [1, 6, 40]) assert.ok(count(outline(nested, { lines })).drawn <= lines);
    const unfolded = new Map([["/b", 100_000]]);
    assert.ok(count(outline(nested, { unfolded })).drawn <= MAX_LINES);
  });

  it("draws and folds all lines, and unfolding moves lines from one group to the other", () => {
    const value = { list: Array.from({ length: 100 }, (_, i) => `item ${i}`), note: numbered(80) };
    const total = 1 + 100 + 80;
    const before = count(outline(value));
    assert.equal(before.drawn + before.folded, total);
    const after = count(outline(value, { unfolded: new Map([["/note", 50]]) }));
    assert.equal(after.drawn + after.folded, total);
    assert.equal(after.drawn, before.drawn + 50);
  });

  it("distinguishes strings from other types, and lines of a string from members", () => {
    assert.deepEqual(outlineLines({ a: "5", b: 5, c: "", d: "x\namount: 1", e: [], f: {}, g: null }), [
      'a: "5"',
      "b: 5",
      'c: ""',
      "d:",
      "  | x",
      "  | amount: 1",
      "e: []",
      "f: {}",
      "g: null",
    ]);
  });

  it("does not split a character, and reports the length of a cut name", () => {
    const drawn = outline({ note: "😀".repeat(400) }, { lines: 1 });
    const text = drawn.kind === "members" && drawn.members[0]?.value.kind === "text" && drawn.members[0].value.text;
    assert.equal(text, "😀".repeat(50));
    assert.match(outlineLines({ ["n".repeat(5000)]: 1 })[0] ?? "", /^n{80}… \(5,000 characters\): 1$/);
  });
});

describe("marks in a text", () => {
  it("names hidden characters", () => {
    assert.equal(renderMarkedText("a\u202eb\u200bc"), "a[U+202E]b[U+200B]c");
    assert.equal(renderMarkedText("x\ny"), "x[U+000A]y");
    assert.deepEqual(markText("x\ny", { lines: true }), [{ text: "x\ny", kind: "plain", mark: null }]);
    assert.equal(renderMarkedText(`a${"\u0301".repeat(6)}`), `a${"\u0301".repeat(4)}[U+0301][U+0301]`);
  });

  it("names letters that imitate Latin ones", () => {
    assert.equal(renderMarkedText("pay pаypal now"), "pay pаypal [Cyrillic а U+0430] now");
    assert.equal(renderMarkedText("аcct_1"), "аcct_1 [Cyrillic а U+0430]");
    assert.equal(renderMarkedText("раура"), "раура [Cyrillic letters that look like Latin]");
    assert.equal(renderMarkedText("аррӏе.com"), "аррӏе.com [Cyrillic а U+0430, р U+0440, ӏ U+04CF, …]");
    assert.equal(renderMarkedText("Αlice"), "Αlice [Greek Α U+0391]");
    assert.equal(renderMarkedText("ｂａｎｋ"), "ｂａｎｋ [look-alikes ｂ U+FF42, ａ U+FF41, ｎ U+FF4E, …]");
    assert.equal(renderMarkedText("𝐛ank"), "𝐛ank [look-alikes 𝐛 U+1D41B]");
  });

  it("does not mark ordinary text of any language", () => {
    for (const text of [
      "Überweisung an Zoë, 5 €",
      "он сам сос и оса, и больше ничего",
      "Η Άννα και ο Κώστας",
      "東京タワー Tokyo2026年",
      "서울 API키",
      "m² ½ … ™ “quoted” – 5°",
    ])
      assert.equal(renderMarkedText(text), text);
  });

  it("bounds the number of marks in one text", () => {
    const parts = markText("\u200b".repeat(60_000));
    assert.ok(parts.length <= 41);
    assert.equal(parts.at(-1)?.text, "[U+200B]".repeat(60_000 - 40));
    assert.ok(markText("pаy ".repeat(20_000)).length <= 100);
  });
});
