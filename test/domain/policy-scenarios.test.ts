/** Scenarios of policy tests: what they simulate, how they fail, and which of them are faulty. */
import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { measureCoverage } from "../../src/domain/policy/test/coverage.ts";
import { parsePolicyTests } from "../../src/domain/policy/parse/parse.ts";
import { runPolicyTest } from "../../src/domain/policy/test/run-tests.ts";
import type { TestResult } from "../../src/domain/policy/test/test-result.ts";
import { policy, rule } from "../support/policy.ts";

const POLICIES = [
  policy(
    "pay",
    [
      rule("large", "require_approval", {
        tool: "pay",
        when: "params.n > 100",
        approval: {
          stages: [{ approvers: [{ group: "finance" }] }, { approvers: [{ group: "legal", count: 1 }, {}] }],
          exclude_requester_groups: true,
          expires_in: "2h",
          valid_for: "10m",
          rejection_holds: "1h",
        },
      }),
      rule("small", "allow", { tool: "pay" }),
    ],
    { limits: [{ name: "sum a day", tool: "pay", sum: "params.n", at_most: 1000, window: "24h" }] },
  ),
  policy(
    "mail",
    [
      rule("tainted", "deny", { tool: "mail", when: 'history.any(h, h.tool == "inbox" && h.may_have_run)' }),
      rule("mail", "require_approval", { tool: "mail", approval: { signature: "passkey", mode: "self_confirm" } }),
      rule("inbox", "allow", { tool: "inbox" }),
    ],
    { history: { per: "session", tool: "inbox", window: "24h", max: 10 } },
  ),
];

function run(steps: string, policies = POLICIES): TestResult {
  const text = `now: 2026-01-15T10:00:00Z\nscenarios:\n  - name: s\n    steps:\n${steps
    .trim()
    .split("\n")
    .map((line) => `      - { ${line.trim()} }\n`)
    .join("")}`;
  const { tests, faults } = parsePolicyTests(text, "x_test.yaml");
  assert.deepEqual(faults, []);
  const [result, ...others] = tests.flatMap((one) => runPolicyTest(policies, one));
  assert.deepEqual(others, []);
  return result as TestResult;
}

const PAY = (n: number, more = ""): string =>
  `submit: { agent_id: a, tool: pay, operation: o, params: { n: ${n} } }, principal: { owner: ada }${more}`;
const MAIL = "submit: { agent_id: a, tool: mail, operation: send }";
const READ = "submit: { agent_id: a, tool: inbox, operation: read }";

test("votes count by stage, group and person, until the approval expires", () => {
  const large = PAY(500, ", id: p");
  const approve = (more: string, expect = ""): string =>
    `approve: p, ${more}${expect === "" ? "" : `, expect: { ${expect} }`}`;
  const passing = [
    [
      large,
      approve("by: bob, groups: [legal]", "refused: APPROVER_NOT_ELIGIBLE, status: pending_approval"),
      approve("by: bob, groups: [finance], shares_group: true", "refused: APPROVER_NOT_ELIGIBLE"),
      approve("by: ada, groups: [finance], signed: true", "refused: SELF_APPROVAL"),
      approve("by: bob, groups: [finance]", "status: pending_approval"),
      approve("by: bob, groups: [legal]", "refused: ALREADY_VOTED"),
      approve("by: eve", "status: pending_approval"),
      approve("by: kim, groups: [legal]", "status: approved"),
      "after: 9m, start: p, expect: { status: executing }",
      "finish: p, success: false, expect: { status: failed }",
      "finish: p, expect: { refused: ACTION_NOT_STARTED }",
    ],
    [large, "after: 2h, approve: p, by: bob, expect: { refused: APPROVAL_EXPIRED, status: expired }"],
    [
      large,
      "reject: p, by: bob, expect: { status: denied }",
      "approve: p, by: kim, expect: { refused: ACTION_NOT_PENDING }",
      PAY(500, ", expect: { effect: deny, reason_code: EARLIER_REJECTION, status: denied }"),
      `after: 1h, ${PAY(500, ", expect: { effect: require_approval }")}`,
    ],
    [
      PAY(5, ", id: q"),
      "after: 5m, start: q, expect: { refused: START_EXPIRED, status: allowed }",
      "cancel: q, expect: { refused: ACTION_NOT_PENDING }",
    ],
  ];
  for (const steps of passing) assert.equal(run(steps.join("\n")).failure, null);
});

test("limits count what may have run, as time passes", () => {
  const steps = [
    PAY(100, ", times: 9, expect: { effect: allow }"),
    PAY(50, ", id: one"),
    PAY(51, ", expect: { effect: deny, rule: sum a day, reason_code: LIMIT_EXCEEDED }"),
    "cancel: one, expect: { status: cancelled }",
    PAY(100, ", expect: { effect: allow }"),
    PAY(0, ", id: two"),
    "start: two, expect: { status: executing }",
    `after: 24h, ${PAY(100, ", expect: { effect: allow }")}`,
    "start: two, expect: { refused: ACTION_NOT_STARTABLE, status: unknown }",
    "finish: two, expect: { status: succeeded }",
  ];
  assert.equal(run(steps.join("\n")).failure, null);
  const pending = [
    PAY(500, ", id: p"),
    PAY(500, ", id: q"),
    PAY(1, ", expect: { effect: deny }"),
    "after: 2h",
    PAY(1, ", expect: { effect: allow }"),
  ];
  assert.equal(run(pending.join("\n")).failure, null);
});

test("histories contain earlier actions of the session, even when an open action is evaluated again", () => {
  const steps = [
    `${MAIL}, session: s, id: m, expect: { effect: require_approval }`,
    "approve: m, by: bob, expect: { refused: VOTE_SIGNATURE_REQUIRED }",
    `${READ}, session: t`,
    "approve: m, by: bob, signed: true, expect: { status: approved }",
    `${READ}, session: s, expect: { effect: allow }`,
    "start: m, expect: { refused: NO_LONGER_ALLOWED, status: denied }",
    `${MAIL}, session: s, expect: { effect: deny, rule: tainted }`,
    `after: 25h, ${MAIL}, session: s, expect: { effect: require_approval }`,
  ];
  assert.equal(run(steps.join("\n")).failure, null);
});

test("the first step that differs is named with its position, and what it differs in", () => {
  const failing: [step: string, failure: string, pointer: string][] = [
    [
      PAY(500, ", expect: { effect: allow }"),
      'step 2 (submit): effect is require_approval, expected allow (sent for approval by rule "large" of policy "pay")',
      "/scenarios/0/steps/1",
    ],
    [
      PAY(1, ", times: 3, expect: { status: denied }"),
      "step 2 (submit): submission 1: status is allowed, expected denied",
      "/scenarios/0/steps/1",
    ],
    [
      "approve: p, by: bob",
      "step 2 (approve): it is refused with APPROVER_NOT_ELIGIBLE (the approval of bob would not count)",
      "/scenarios/0/steps/1",
    ],
    [
      "reject: p, by: bob, expect: { refused: ALREADY_VOTED }",
      "step 2 (reject): it is not refused, expected ALREADY_VOTED",
      "/scenarios/0/steps/1",
    ],
    [
      "start: p, expect: { refused: START_EXPIRED }",
      "step 2 (start): it is refused with ACTION_NOT_STARTABLE (the action is pending_approval), expected START_EXPIRED",
      "/scenarios/0/steps/1",
    ],
  ];
  for (const [step, failure, pointer] of failing) {
    const result = run(`${PAY(500, ", id: p")}\n${step}\n${PAY(1, ", expect: { effect: deny }")}`);
    assert.deepEqual([result.failure, result.pointer], [failure, pointer]);
  }
});

test("expectations name who approves, grants, reviewers and signatures", () => {
  const asking = (expect: string): string | null => run(PAY(500, `, expect: { approval: { ${expect} } }`)).failure;
  assert.equal(
    asking(
      "stages: [{ approvers: [{ group: finance }] }, { approvers: [{}, { group: legal }] }], exclude_requester_groups: true, signature: none, grants: none, reviewers: [], quorum: 3",
    ),
    null,
  );
  const wrong: [expect: string, difference: string][] = [
    [
      "approvers: [{ group: legal }]",
      "approval.approvers is 1 of finance, then 1 of anyone + 1 of legal, expected 1 of legal",
    ],
    [
      "stages: [{ approvers: [{ count: 2 }] }, { after: 30m, approvers: [{}] }]",
      "approval.stages is 1 of finance, then 1 of anyone + 1 of legal, expected 2 of anyone, or after 30m 1 of anyone",
    ],
    ["exclude_requester_groups: false", "approval.exclude_requester_groups is true, expected false"],
    ["signature: passkey", "approval.signature is none, expected passkey"],
    ["grants: { for: 8h, count: 5 }", "approval.grants is none, expected 5 uses in 8h"],
    ["reviewers: [scan]", "approval.reviewers is [], expected [scan]"],
  ];
  for (const [expect, difference] of wrong)
    assert.equal(asking(expect)?.includes(`${difference} (`), true, asking(expect) ?? "");
});

test("a shadow answer can be expected with its rule", () => {
  const policies = [policy("p", [rule("all", "allow")]), policy("s", [rule("never", "deny")], { mode: "shadow" })];
  const failure = (shadow: string): string | null | undefined => {
    const text = `now: 2026-01-15T10:00:00Z\ncases:\n  - { name: c, action: { agent_id: a, tool: t, operation: o }, expect: { effect: allow, shadow: { s: ${shadow} } } }\n`;
    return parsePolicyTests(text, "x_test.yaml").tests.flatMap((one) => runPolicyTest(policies, one))[0]?.failure;
  };
  assert.equal(failure("{ effect: deny, rule: never }"), null);
  assert.match(failure("{ effect: deny, rule: other }") ?? "", /^shadow\.s\.rule is never, expected other /);
});

test("coverage counts the actions of scenarios, and how often each condition was true and false", () => {
  const results = [run([PAY(500), PAY(5), PAY(6), `${READ}, session: s`, `${MAIL}, session: s`].join("\n"))];
  assert.deepEqual(
    measureCoverage(POLICIES, results).rules.map(({ rule: name, reached, condition }) => [name, reached, condition]),
    [
      ["large", 1, { true: 1, false: 2 }],
      ["small", 2, null],
      ["sum a day", 0, null],
      ["tainted", 1, { true: 1, false: 0 }],
      ["mail", 0, null],
      ["inbox", 1, null],
    ],
  );
});

test("steps that no scenario can have are faults with a position", () => {
  const faultsOf = (...steps: string[]): string[] =>
    parsePolicyTests(
      `now: 2026-01-15T10:00:00Z\nscenarios:\n  - name: s\n    steps:\n${steps.map((step) => `      - { ${step} }\n`).join("")}`,
      "x_test.yaml",
    ).faults.map(({ line, column, message }) => `${line}:${column} ${message.replace(/^scenarios\.0\.steps\.?/, "")}`);
  const submit = "submit: { agent_id: a, tool: t, operation: o }";
  const faulty: [steps: string[], fault: string][] = [
    [
      ["expect: { status: denied }"],
      "5:9 0: a step needs one of submit, approve, reject, start, finish, cancel or after",
    ],
    [["approve: p, by: b"], '5:20 0.approve: no earlier step submits an action with the id "p"'],
    [[`${submit}, id: p`, "approve: p"], "6:9 1: approve needs `by`: who votes"],
    [[`${submit}, id: p`, "start: p, cancel: p"], "6:21 1.cancel: cancel has no meaning with start"],
    [
      [`${submit}, id: p`, "start: p, expect: { effect: deny }"],
      "6:31 1.expect.effect: effect has no meaning with start",
    ],
    [[`${submit}, expect: { refused: X }`], "5:69 0.expect.refused: refused has no meaning with submit"],
    [[`${submit}, id: p`, `${submit}, id: p`], '6:59 1.id: an earlier step uses the id "p"'],
    [[`${submit}, id: p, times: 2`], "5:59 0.id: an action that is submitted several times has no id"],
    [
      [`${submit}, times: 600`, `${submit}, times: 600`],
      "5:7 : a scenario submits at most 1000 actions; this one submits 1200",
    ],
    [["after: soon"], '5:18 0.after: "soon" is not a duration such as 30m, 1h or 7d'],
    [
      [`${submit}, expect: { effect: allow, approval: { quorum: 1 } }`],
      '5:84 0.expect.approval: the effect "allow" has no approval; remove it',
    ],
  ];
  for (const [steps, fault] of faulty) assert.deepEqual(faultsOf(...steps), [fault]);
  assert.deepEqual(
    parsePolicyTests("now: 2026-01-15T10:00:00Z\n", "x_test.yaml").faults.map(({ message }) => message),
    ["a test needs `cases`, `scenarios` or both"],
  );
});

describe("results", () => {
  const definition = policy(
    "models",
    [
      rule("known customer", "allow", {
        tool: "refund",
        when: "history.any(h, has(h.result.customer_id) && h.result.customer_id == params.customer)",
      }),
      rule("tainted", "deny", { tool: "mail", when: '"outside" in session.labels' }),
      rule("all", "allow", { tool: ["model", "crm", "mail"] }),
    ],
    {
      history: { per: "agent", tool: "crm", window: "1h", max: 5, keep: ["result.customer_id"] },
      limits: [{ name: "money", tool: "model", sum: "usage.cost", reserve: 1, at_most: 2, window: "day" }],
    },
  );
  const MODEL = "submit: { agent_id: a, tool: model, operation: o }";
  const REFUND = "submit: { agent_id: a, tool: refund, operation: o, params: { customer: c-1 } }";
  const CRM = "submit: { agent_id: a, tool: crm, operation: o }, id: look";

  test("reported usage replaces the reserve, and stops an action that has not started", () => {
    const denied = "expect: { effect: deny, reason_code: LIMIT_EXCEEDED }";
    const steps = `${MODEL}, id: one
      start: one
      finish: one, usage: { cost: 0.25 }
      ${MODEL}, id: two, expect: { effect: allow }
      ${MODEL}, ${denied}
      start: two
      finish: two, usage: { cost: 1.75, tokens: 9 }
      ${MODEL}, ${denied}`;
    assert.equal(run(steps, [definition]).failure, null);
    const used = `${MODEL}, id: one
      ${MODEL}, id: two
      start: one
      finish: one, usage: { cost: 1.5 }
      start: two, expect: { refused: NO_LONGER_ALLOWED }`;
    assert.equal(run(used, [definition]).failure, null);
  });

  test("a history keeps members of the reported result", () => {
    const denied = "expect: { effect: deny }";
    const steps = `${CRM}
      start: look
      ${REFUND}, ${denied}
      finish: look, result: { customer_id: c-1, name: Ada }
      ${REFUND}, expect: { effect: allow }`;
    assert.equal(run(steps, [definition]).failure, null);
  });

  test("a submission has the labels that it states", () => {
    const mail = "submit: { agent_id: a, tool: mail, operation: o }";
    const steps = `${mail}, labels: [outside], expect: { effect: deny }
      ${mail}, expect: { effect: allow }`;
    assert.equal(run(steps, [definition]).failure, null);
  });
});
