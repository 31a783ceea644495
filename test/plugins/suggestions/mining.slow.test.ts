/** Suggestions from histories: planted habits are found, traps and hostile values are not turned into rules. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { upperRejectionBound } from "../../../plugins/suggestions/mining/rejection-bound.ts";
import type { PastDecision, PastDecisionQuery, SuggestionReport } from "../../../plugins/suggestions/mining/report.ts";
import suggestPolicies from "../../../plugins/suggestions/mining/suggest-policies.ts";
import type { ActionRequest } from "../../../src/domain/actions.ts";
import {
  buildPolicySet,
  compilePolicySet,
  type CompiledPolicySet,
} from "../../../src/domain/policy/compile/compile.ts";
import { decide } from "../../../src/domain/policy/decide/decide.ts";
import { parsePolicies, parsePolicyTests } from "../../../src/domain/policy/parse/parse.ts";
import type { PolicyDocument } from "../../../src/domain/policy/policy-types.ts";
import { runPolicyTest } from "../../../src/domain/policy/test/run-tests.ts";
import { checkPolicyFolder } from "../../../src/policies/folder.ts";
import { ROOT } from "../../support/runtimes.ts";
import { POLICIES } from "../../support/service.ts";
import { ASKING, END, generateHistory, KINDS, pastDecision, type Asked } from "./past-requests.ts";
import { randomFrom } from "../../support/random.ts";

const DAY = 86_400_000;
const PAGE = 100;
const BAR = { min_approvals: 20, min_people: 2, min_days: 3 };
const WORK = compilePolicySet(buildPolicySet([{ policy: "work", version: 1, definition: ASKING }]));

function suggest(history: readonly PastDecision[], bar = BAR, set = WORK, limit = 20_000): Promise<SuggestionReport> {
  const page = (from: number) => {
    const decisions = history.slice(from, from + PAGE);
    return { decisions, read: decisions.length, skipped: 0, next: from + PAGE < history.length ? from + PAGE : null };
  };
  const range = { since: 0, until: END + 1, limit, ...bar };
  return suggestPolicies({
    sets: [set],
    signal: new AbortController().signal,
    yieldWithoutLimit: () => null,
    input: range,
    read: ({ before }: PastDecisionQuery) => Promise.resolve(page(before ?? 0)),
    yieldIfSlow: () => null,
  });
}

/** `n` requests from two agents, approved by two people on different days; `over` changes each. */
function approvals(
  n: number,
  make: (i: number) => Partial<Asked>,
  over: (i: number) => object = () => ({}),
): PastDecision[] {
  return Array.from({ length: n }, (_, i) =>
    pastDecision(
      i,
      { agent: `bot-${i % 2}`, tool: "stripe", operation: "refund", params: {}, ...make(i) },
      { at: END - i * 6 * 3_600_000, approver: `user:p${i % 3}`, approve: true, ...over(i) },
    ),
  );
}
const rejection = (id: number, params: Asked["params"], agent = "bot-0"): PastDecision =>
  pastDecision(
    id,
    { agent, tool: "stripe", operation: "refund", params },
    { at: END - DAY, approver: "user:p0", approve: false },
  );

const enforced = (yaml: string): PolicyDocument => {
  const { documents, faults } = parsePolicies(yaml, "suggested.yaml");
  assert.deepEqual(faults, [], yaml);
  return { ...(documents[0] as PolicyDocument), mode: "enforce" };
};
const withSuggestions = ({ suggestions }: SuggestionReport): CompiledPolicySet =>
  compilePolicySet(
    buildPolicySet([
      { policy: "work", version: 1, definition: ASKING },
      ...suggestions.map(({ yaml, policy }) => ({ policy, version: 1, definition: enforced(yaml) })),
    ]),
  );
const allows = (set: CompiledPolicySet, { agent, tool, operation, params, context = {} }: Asked): boolean => {
  const request: ActionRequest = { agent_id: agent, tool, operation, params, context };
  const principal = { key_id: "k", name: "k", agent_id: agent, owner: null };
  return decide(set, request, { principal, suggested: [...set.suggested] }, END).effect === "allow";
};

describe("10,000 generated actions with three habits and two traps", () => {
  test("exactly the habits are suggested, and on 10,000 fresh actions no rule allows what a person would reject", async () => {
    const report = await suggest(generateHistory(10_000, 7));
    assert.deepEqual(report.suggestions.map(({ tool }) => tool).sort(), ["files", "mail", "stripe"]);
    assert.deepEqual([report.read, report.truncated, report.groups], [10_000, false, 6]);
    const set = withSuggestions(report);
    const random = randomFrom(8);
    let [allowed, wrong, missed] = [0, 0, 0];
    for (const kind of KINDS)
      for (let i = 0; i < kind.weight * 100; i++) {
        const { approve, ...asked } = kind.make(random);
        const isAllowed = allows(set, asked);
        if (isAllowed) allowed++;
        if (isAllowed && !approve) wrong++;
        if (!isAllowed && approve && ["refunds", "reports", "mails"].includes(kind.name)) missed++;
      }
    assert.equal(wrong, 0);
    // Half of the larger refunds are approved, which no parameter shows: they stay with people.
    assert.ok(allowed > 3_500 && missed < 1_500, `${allowed} allowed, ${missed} missed`);
  });

  test("the same history gives the same suggestions", async () => {
    const history = generateHistory(2_000, 3);
    assert.deepEqual(await suggest(history), await suggest(history));
  });

  test("at most `limit` decisions are read, and the report says so", async () => {
    const report = await suggest(generateHistory(1_000, 3), BAR, WORK, 300);
    assert.deepEqual([report.read, report.truncated], [300, true]);
  });
});

describe("the evidence bar", () => {
  const small = (i: number): Partial<Asked> => ({ params: { amount: i } });
  test("is met by approvals of two agents in the range of both, and the evidence counts them", async () => {
    const [suggestion] = (await suggest(approvals(40, small))).suggestions;
    const { evidence } = suggestion ?? assert.fail();
    assert.deepEqual(
      [evidence.approvals, evidence.counted, evidence.weak, evidence.people, evidence.agents, evidence.days],
      [38, 20, 0, 3, 2, 10],
    );
    assert.deepEqual(
      [evidence.median_vote_ms, evidence.outcomes.succeeded, evidence.backtest.flipped],
      [20_000, 38, 38],
    );
    assert.equal(evidence.rejection_bound.upper, upperRejectionBound(0, 38, 0.95));
  });

  for (const [why, history] of [
    ["one agent's volume", approvals(2_000, (i) => ({ ...small(i % 50), agent: "bot-0" }))],
    [
      "one agent's volume with a few of another",
      approvals(500, (i) => ({ ...small(i % 50), agent: i < 9 ? "bot-1" : "bot-0" })),
    ],
    [
      "one key that names many agents",
      approvals(
        500,
        (i) => ({ ...small(i % 50), agent: `bot-${i % 40}` }),
        () => ({ source: "key-1" }),
      ),
    ],
    ["votes within three seconds", approvals(500, small, () => ({ took: 2_000 }))],
    [
      "votes right after each other",
      approvals(500, small, (i) => ({ at: END - i * 1_000, took: 3_600_000, approver: "user:p0" })),
    ],
    ["one person", approvals(500, small, () => ({ approver: "user:p0" }))],
    ["one day", approvals(500, small, (i) => ({ at: END - i * 10_000 }))],
    ["names that are patterns", approvals(500, (i) => ({ ...small(i % 50), tool: "*", agent: `*${i % 2}` }))],
    ["free text", approvals(500, (i) => ({ params: { command: `npm run x${i}; echo done` } }))],
    ["nested parameters", approvals(500, (i) => ({ params: { items: [i] } }))],
  ] as const)
    test(`${why} gives no suggestion`, async () => {
      assert.deepEqual((await suggest(history)).suggestions, []);
    });

  test("an approval of the person's own action does not count", async () => {
    const history = approvals(500, small).map((each) => ({
      ...each,
      votes: each.votes.map((vote) => ({ ...vote, exceptional: true })),
    }));
    assert.deepEqual((await suggest(history)).suggestions, []);
  });
});

describe("a rejection", () => {
  test("disqualifies every rule that it matches, whichever agent asked", async () => {
    const history = approvals(40, (i) => ({ params: { amount: i } }));
    for (const agent of ["bot-0", "stranger"])
      assert.deepEqual((await suggest([...history, rejection(99, { amount: 20 }, agent)])).suggestions, []);
  });

  test("is among the nearest, with what the rule does not cover in words", async () => {
    const history = [...approvals(40, (i) => ({ params: { amount: i } })), rejection(99, { amount: 41 })];
    const [suggestion] = (await suggest(history)).suggestions;
    assert.deepEqual(
      suggestion?.evidence.nearest_rejections.map(({ action_id, failed }) => [action_id, failed]),
      [["action-000099", ["amount is 41"]]],
    );
    assert.deepEqual(
      suggestion?.conditions.map(({ words }) => words),
      ["no parameters except amount", "no context", "amount is from 1 to 38"],
    );
  });

  test("of one request in many does not make the values around it a rule", async () => {
    const history = approvals(400, (i) => ({ params: { amount: i } }));
    const rejected = [50, 120, 260, 330].map((amount, i) => rejection(1_000 + i, { amount }));
    assert.deepEqual((await suggest([...history, ...rejected])).suggestions, []);
  });
});

describe("the context", () => {
  const asked = { agent: "bot-0", tool: "stripe", operation: "refund" };
  const inContext = (env: string) => (i: number) => ({ params: { amount: i }, context: { env } });

  test("of approvals is fixed: approvals in staging allow nothing in production, without a context, or with more of it", async () => {
    const report = await suggest(approvals(60, inContext("staging")));
    assert.equal(report.suggestions.length, 1);
    const set = withSuggestions(report);
    const params = { amount: 7 };
    assert.equal(allows(set, { ...asked, params, context: { env: "staging" } }), true);
    for (const context of [{ env: "production" }, {}, { env: "staging", dry_run: false }, { env: ["staging"] }])
      assert.equal(allows(set, { ...asked, params, context }), false, JSON.stringify(context));
  });

  test("that no approval had is excluded", async () => {
    const set = withSuggestions(await suggest(approvals(60, (i) => ({ params: { amount: i } }))));
    assert.equal(allows(set, { ...asked, params: { amount: 7 } }), true);
    assert.equal(allows(set, { ...asked, params: { amount: 7 }, context: { env: "production" } }), false);
  });

  test("that is nested or free text gives no suggestion", async () => {
    for (const context of [(i: number) => ({ why: `because of ticket ${i}; see below` }), () => ({ tags: ["a"] })])
      assert.deepEqual(
        (await suggest(approvals(60, (i) => ({ params: { amount: i }, context: context(i) })))).suggestions,
        [],
      );
  });

  test("separates approvals from rejections as parameters do", async () => {
    const rejected = Array.from({ length: 40 }, (_, i) =>
      pastDecision(
        1_000 + i,
        { ...asked, ...inContext("production")(i) },
        { at: END - DAY, approver: "user:p0", approve: false },
      ),
    );
    const report = await suggest([...approvals(200, inContext("staging")), ...rejected]);
    const set = withSuggestions(report);
    assert.equal(allows(set, { ...asked, params: { amount: 7 }, context: { env: "staging" } }), true);
    assert.equal(allows(set, { ...asked, params: { amount: 7 }, context: { env: "production" } }), false);
  });
});

describe("combinations that no one approved", () => {
  const asked = { agent: "bot-0", tool: "stripe", operation: "refund" };
  const isProduction = (i: number): boolean => i % 4 > 1;

  test("of an environment and a flag, or of an agent and an environment, are not allowed", async () => {
    const env = (i: number): string => (isProduction(i) ? "production" : "staging");
    for (const history of [
      approvals(80, (i) => ({ params: { force: !isProduction(i) && i % 8 < 4 }, context: { env: env(i) } })),
      approvals(80, (i) => ({ agent: isProduction(i) ? "bot-0" : "bot-1", params: {}, context: { env: env(i) } })),
      approvals(80, (i) => ({ params: isProduction(i) ? {} : { force: true }, context: { env: env(i) } })),
    ]) {
      const set = withSuggestions(await suggest(history));
      for (const [agent, params] of [
        ["bot-0", { force: true }],
        ["bot-1", { force: true }],
        ["bot-1", {}],
      ] as const) {
        const request = { ...asked, agent, params, context: { env: "production" } };
        const wasApproved = history.some(
          (each) => each.request === pastDecision(0, request, { at: 0, approver: "", approve: true }).request,
        );
        if (!wasApproved) assert.equal(allows(set, request), false, JSON.stringify(request));
      }
    }
  });

  test("of an environment and an amount or a path are not allowed, and those that were approved are", async () => {
    const set = withSuggestions(
      await suggest(
        approvals(240, (i) => ({
          params: {
            amount: isProduction(i) ? (i >> 2) % 10 : i,
            path: isProduction(i) ? `/srv/live/f${i}` : `/srv/test/f${i}`,
          },
          context: { env: isProduction(i) ? "production" : "staging" },
        })),
      ),
    );
    const may = (env: string, amount: number, path: string): boolean =>
      allows(set, { ...asked, params: { amount, path }, context: { env } });
    assert.equal(may("staging", 100, "/srv/test/f9"), true);
    assert.equal(may("production", 5, "/srv/live/f9"), true);
    assert.equal(may("production", 100, "/srv/live/f9"), false);
    assert.equal(may("production", 5, "/srv/test/f9"), false);
    assert.equal(may("staging", 5, "/srv/live/f9"), false);
  });

  test("of an agent and an amount are not allowed, and an agent with few requests prevents no rule for others", async () => {
    const history = approvals(121, (i) => ({
      agent: i === 120 ? "bot-9" : `bot-${i % 3}`,
      params: { amount: i % 3 === 0 ? i % 40 : i },
    }));
    const set = withSuggestions(await suggest(history));
    const may = (agent: string, amount: number): boolean => allows(set, { ...asked, agent, params: { amount } });
    assert.deepEqual([may("bot-0", 5), may("bot-1", 30), may("bot-0", 50)], [true, true, false]);
    assert.equal(may("bot-9", 5), false);
  });
});

describe("an agent that wants a rule", () => {
  test("gets none that covers parameters, folders, options or commands that no one approved", async () => {
    const history = approvals(60, (i) => ({
      tool: "files",
      operation: "write",
      params: { path: `/srv/app/f${i}.txt`, n: (i >> 1) % 2 },
    }));
    const set = withSuggestions(await suggest(history));
    const write = (params: Asked["params"], agent = "bot-0"): boolean =>
      allows(set, { agent, tool: "files", operation: "write", params });
    assert.equal(write({ path: "/srv/app/f3.txt", n: 1 }), true);
    for (const path of [
      "/srv/app/../../etc/passwd.txt",
      "/srv/app/x.txt; rm -rf /",
      "/srv/app/$(id)",
      "/srv/application/f.txt",
      "/srv/app/",
      "/srv/app/-rf",
      "/srv/app/\n/etc/x",
      `/srv/app/f${"1".repeat(300)}`,
    ])
      assert.equal(write({ path, n: 1 }), false, path);
    assert.equal(write({ path: "/srv/app/f3.txt", n: 1, force: true }), false);
    assert.equal(write({ path: "/srv/app/f3.txt", n: 2 }), false);
    assert.equal(write({ path: "/srv/app/f3.txt" }), false);
    assert.equal(write({ path: ["/srv/app/f3.txt"], n: 1 }), false);
    assert.equal(write({ path: "/srv/app/f3.txt", n: 1 }, "bot-2"), false);
  });

  test("gets none that covers endings that no one approved", async () => {
    const host = (i: number): string => `web${i}.example.com`;
    const version = (i: number): string => `1.${i}.0`;
    const mail = (i: number): string => `bot${i}.reports@x${(i >> 1) % 3}.example.com`;
    const path = (i: number): string => `/srv/app/f${i}.txt`;
    for (const [make, others] of [
      [host, ["web.evil.io", "webx.evil.com", "example.com", ".example.com", "web1.example.com.evil.io"]],
      [version, ["9.9.9", "2.0.0", "1.5.1", "127.0.0.1"]],
      [mail, ["bot1.reports@x1.evil.io", "bot1@x1.example.com"]],
      [path, ["/srv/app/f1.pem", "/srv/app/f1", "/srv/app/f1.txt.sh"]],
    ] as const) {
      const set = withSuggestions(await suggest(approvals(60, (i) => ({ params: { to: make(i) } }))));
      const send = (to: string): boolean =>
        allows(set, { agent: "bot-0", tool: "stripe", operation: "refund", params: { to } });
      assert.equal(send(make(7)), true, make(7));
      for (const to of others) assert.equal(send(to), false, to);
    }
  });

  test("gets none for mail addresses of several domains, or for addresses of several hosts", async () => {
    for (const make of [
      (i: number) => `bot${i}@x${i % 7}.com`,
      (i: number) => `https://h${i % 7}.example.com/reports/${i}`,
      (i: number) => `s3://bucket${i}/reports`,
      (i: number) => `copy:https://h${i}.example.com`,
    ])
      assert.deepEqual((await suggest(approvals(60, (i) => ({ params: { to: make(i) } })))).suggestions, []);
  });

  const HOSTILE = [
    'a"] || true || params.x in ["',
    "a' || true || '",
    'x"\n    effect: allow\n  - name: all\n    effect: allow\n#',
    "- {a: &b *b} # %TAG ! --- ...",
    "\\",
    "\\u0022",
    "\u2028\u202e\u0000\u0085\ufeff",
    "${1+1}{{x}}",
    "😀é",
    "true",
    "~",
    "",
  ];
  for (const value of HOSTILE)
    test(`the value ${JSON.stringify(value)} appears only as a literal`, async () => {
      const report = await suggest(approvals(40, () => ({ params: { note: value, [value]: 1 } })));
      const [suggestion] = report.suggestions;
      const { rules } = enforced(suggestion?.yaml ?? assert.fail());
      assert.deepEqual([rules.length, rules[0]?.when, rules[0]?.name], [1, suggestion?.when, "as people decided"]);
      assert.match(suggestion?.policy ?? "", /^suggested-[0-9a-f]{12}$/);
      assert.match(`${suggestion?.yaml}${suggestion?.tests}`, /^[\n\x20-\x7e]*$/);
      const set = withSuggestions(report);
      const asked = { agent: "bot-0", tool: "stripe", operation: "refund" };
      assert.equal(allows(set, { ...asked, params: { note: value, [value]: 1 } }), true);
      assert.equal(allows(set, { ...asked, params: { note: `${value} `, [value]: 1 } }), false);
      assert.equal(allows(set, { ...asked, params: { note: value, [value]: 1, more: 1 } }), false);
    });
});

test("the suggested tests pass while the policy is in shadow mode", async () => {
  const report = await suggest(generateHistory(3_000, 5));
  assert.ok(report.suggestions.length > 0);
  for (const { yaml, tests } of report.suggestions) {
    const { documents } = parsePolicies(yaml, "suggested.yaml");
    const { tests: parsed, faults } = parsePolicyTests(tests, "suggested_test.yaml");
    assert.deepEqual(faults, []);
    const results = parsed.flatMap((each) => runPolicyTest([ASKING, ...documents], each));
    assert.ok(results.length >= 4);
    assert.deepEqual(
      results.map(({ failure }) => failure),
      results.map(() => null),
    );
  }
});

test("nothing is suggested where two rules require approval, or where the risk is critical", async () => {
  const history = approvals(60, (i) => ({ params: { amount: i } }));
  for (const more of [
    { policy: "second", rules: [{ name: "too", tool: "stripe", effect: "require_approval" as const }] },
    {
      policy: "second",
      rules: [{ name: "critical", tool: "stripe", effect: "allow" as const, risk: "critical" as const }],
    },
  ]) {
    const members = [ASKING, more].map((definition) => ({ policy: definition.policy, version: 1, definition }));
    assert.deepEqual((await suggest(history, BAR, compilePolicySet(buildPolicySet(members)))).suggestions, []);
  }
});

test("the upper bound is the exact one", () => {
  // Values of R: qbeta(0.95, k + 1, n - k).
  for (const [k, n, expected] of [
    [0, 59, 0.04950757],
    [0, 1, 0.95],
    [0, 1000, 0.002991249],
    [1, 20, 0.2161068],
    [5, 50, 0.1988262],
    [3, 3, 1],
    [0, 0, 1],
  ] as const)
    assert.ok(Math.abs(upperRejectionBound(k, n) - expected) < 1e-3, `${k} of ${n}: ${upperRejectionBound(k, n)}`);
});

test("the day of the demo gives no suggestion, not even with the lowest bar: no habit has two agents", async () => {
  const day = JSON.parse(readFileSync(join(ROOT, "clients/demo/cli/day.json"), "utf8")) as {
    time: string;
    action: { agent_id: string; tool: string; operation: string; params?: Asked["params"] };
    votes?: { approver: string; approve: boolean }[];
  }[];
  const history = day.flatMap(({ time, action: { agent_id: agent, params = {}, ...action }, votes = [] }, i) => {
    const [vote] = votes;
    if (vote === undefined) return [];
    const at = Date.parse(`2026-11-19T${time}:00Z`);
    return [pastDecision(i, { agent, params, ...action }, { at, approver: vote.approver, approve: vote.approve })];
  });
  const { documents } = await checkPolicyFolder(POLICIES);
  const set = compilePolicySet(
    buildPolicySet(
      documents.map(({ document: definition }) => ({ policy: definition.policy, version: 1, definition })),
    ),
  );
  const report = await suggest(history.toReversed(), { min_approvals: 4, min_people: 1, min_days: 1 }, set);
  assert.ok(report.groups > 2 && report.read > 8, JSON.stringify(report));
  assert.deepEqual(report.suggestions, []);
});
