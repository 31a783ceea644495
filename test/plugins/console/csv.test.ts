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
