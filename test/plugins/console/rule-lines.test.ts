/** The lines of a rule in the text of its policy. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findRuleLines } from "../../../plugins/console/app/ui/rule-lines.ts";

const TEXT = `policy: payments
rules:
  - name: small refunds
    tool: stripe
    when: >-
      params.amount <= 60

  - { effect: deny, name: "large: refunds", tool: stripe }
  # name: not a rule
  - tool: [a, b]
    any:
      - name-like: x
    name: 'other ''refunds'''
limits:
  - name: small refunds per day
`;

describe("the lines of a rule", () => {
  it("are found in block and flow style, with every way to quote the name", () => {
    assert.deepEqual(findRuleLines(TEXT, "small refunds"), { from: 2, to: 6 });
    assert.deepEqual(findRuleLines(TEXT, "large: refunds"), { from: 7, to: 8 });
    assert.deepEqual(findRuleLines(TEXT, "other 'refunds'"), { from: 9, to: 13 });
  });

  it("are not found if no rule has the whole name", () => {
    for (const name of ["small", "not a rule", "x", ""]) assert.equal(findRuleLines(TEXT, name), null, name);
  });
});
