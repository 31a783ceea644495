/** The export of actions as CSV. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { toCsv } from "../../../plugins/console/app/pages/csv.ts";

it("quotes what CSV reserves, and lets no cell become a formula", () => {
  const rows = [
    ["=1+1", -5, { a: 'x,"y"' }],
    ["two\nlines", null, "@sum"],
    ["+49 30", undefined, true],
  ];
  assert.equal(
    toCsv(["text", "number", "more"], rows),
    `text,number,more\r\n'=1+1,-5,"{""a"":""x,\\""y\\""""}"\r\n"two\nlines",,'@sum\r\n'+49 30,,true\r\n`,
  );
});

it("marks formulas in compatibility characters, after characters that spreadsheets ignore, and after other separators", () => {
  for (const [text, cell] of [
    ["＝1+1", "'＝1+1"],
    ["＠SUM(A1)", "'＠SUM(A1)"],
    ["﹣1", "'﹣1"],
    [" =1+1", "' =1+1"],
    ["\u200b\ufeff=1+1", "'\u200b\ufeff=1+1"],
    ["\u00a0@x", "'\u00a0@x"],
    ["\u000b=1+1", "'\u000b=1+1"],
    ["\u2028\u0000=1+1", "'\u2028\u0000=1+1"],
    ["'=1+1", "''=1+1"],
    ['"=1+1', `"'""=1+1"`],
    ["\n=1+1", `"'\n'=1+1"`],
    ["\tx", `"'\tx"`],
    ["Ada;=1+1", `"Ada;'=1+1"`],
    ["Ada\t=1+1", `"Ada\t'=1+1"`],
    ["Ada = Grace", "Ada = Grace"],
    ["a-b", "a-b"],
    ["[1,-2]", '"[1,-2]"'],
  ] as const)
    assert.equal(toCsv([], [[text]]), `\r\n${cell}\r\n`, JSON.stringify(text));
});
