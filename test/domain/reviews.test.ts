/** Machine reviewers: which rules may name them, and how rules combine. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parsePolicies } from "../../src/domain/policy/parse/parse.ts";
import { combineReviewers, findOutstandingReviewers, reviewsApprove } from "../../src/domain/reviews.ts";

const faultsOf = (rule: string): string[] =>
  parsePolicies(`policy: p\nrules:\n  - { name: r, effect: require_approval, ${rule} }\n`, "p.yaml").faults.map(
    ({ message }) => message,
  );
const APPROVING = "reviewers: [{ name: scan, may_approve: true }]";

describe("a rule", () => {
  test("can name reviewers, and let one approve by name", () => {
    assert.deepEqual(faultsOf(`approval: { reviewers: [{ name: scan }, { name: triage, may_approve: true }] }`), []);
    assert.deepEqual(faultsOf(`risk: critical, approval: { reviewers: [{ name: scan }] }`), []);
  });

  for (const [what, rule, fault] of [
    ["of the risk critical", `risk: critical, approval: { ${APPROVING} }`, /"critical"; remove may_approve/],
    ["with several approvers", `approval: { quorum: 2, ${APPROVING} }`, /requires several people/],
    ["with signed votes", `approval: { signature: passkey, ${APPROVING} }`, /signature of a person/],
    ["that names a reviewer twice", `approval: { reviewers: [{ name: scan }, { name: scan }] }`, /listed twice/],
    ["with a name that cannot be configured", `approval: { reviewers: [{ name: "a b" }] }`, /name/],
  ] as const)
    test(`${what} cannot`, () => {
      assert.match(faultsOf(rule).join("\n"), fault);
    });

  test("of a limit cannot let one approve", () => {
    const limit = `limits:\n  - { name: l, count: 1, window: 1h, effect: require_approval, approval: { ${APPROVING} } }\n`;
    const { faults } = parsePolicies(`policy: p\nrules: []\n${limit}`, "p.yaml");
    assert.match(faults.map(({ message }) => message).join("\n"), /exceeds a limit is always approved by a person/);
  });
});

describe("several rules", () => {
  const [may, mayNot] = [
    { name: "scan", may_approve: true },
    { name: "scan", may_approve: false },
  ];
  test("ask all their reviewers, and one approves only if each names it for that", () => {
    assert.deepEqual(combineReviewers([[may], [may]], true), [may]);
    assert.deepEqual(combineReviewers([[may], [mayNot]], true), [mayNot]);
    assert.deepEqual(combineReviewers([[may], []], true), [mayNot]);
    assert.deepEqual(combineReviewers([[may], [may]], false), [mayNot]);
    assert.deepEqual(
      combineReviewers([[mayNot], [{ name: "a", may_approve: true }]], true).map(({ name }) => name),
      ["a", "scan"],
    );
  });
});

describe("reviews approve", () => {
  const required = [
    { name: "scan", may_approve: false },
    { name: "triage", may_approve: true },
  ];
  const of = (scan: string | null, triage: string | null) =>
    Object.entries({ scan, triage }).map(([reviewer, answer]) => ({ reviewer, answer: answer as never }));
  test("if no reviewer objects and one may approve", () => {
    assert.equal(reviewsApprove(required, of("approve", "approve")), true);
    assert.equal(reviewsApprove(required, of("escalate", "approve")), false);
    assert.equal(reviewsApprove(required, of(null, "approve")), false);
    assert.equal(reviewsApprove(required, of("approve", "approve").slice(1)), false);
    assert.equal(reviewsApprove(required.slice(0, 1), of("approve", null)), false);
    assert.equal(reviewsApprove([], []), false);
    assert.deepEqual(findOutstandingReviewers(required, of("approve", null).slice(0, 1)), [required[1]]);
  });
});
