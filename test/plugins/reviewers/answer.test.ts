/** What counts as an answer of a machine reviewer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseReviewAnswer } from "../../../plugins/reviewers/calls.ts";

test("an answer has exactly the members of the contract", () => {
  assert.deepEqual(parseReviewAnswer({ answer: "deny", reason: "r", version: "v" }), {
    answer: "deny",
    reason: "r",
    version: "v",
  });
  for (const other of [
    null,
    [],
    "deny",
    {},
    { answer: "allow" },
    { answer: ["approve"] },
    { answer: "deny", reason: 1 },
    { answer: "approve", may_approve: true },
  ])
    assert.equal(parseReviewAnswer(other), null);
});
