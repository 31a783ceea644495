/** Limits with memory: which actions count, for whom, from when, and how decisions use them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createQuorumPlan } from "../../src/domain/approvers.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { buildPolicySet, compilePolicySet, type CompiledPolicySet } from "../../src/domain/policy/compile/compile.ts";
import { decide, decideEvaluation } from "../../src/domain/policy/decide/decide.ts";
import { Evaluation } from "../../src/domain/policy/decide/evaluation.ts";
import { explain } from "../../src/domain/policy/decide/explain.ts";
import { diffPolicies } from "../../src/domain/policy/diff/diff.ts";
import {
  withAssumedActivation,
  findMatchedLimits,
  MICROS_PER_UNIT,
} from "../../src/domain/policy/decide/limit-facts.ts";
import { parsePolicies } from "../../src/domain/policy/parse/parse.ts";
import { endOfWindow, parseWindow, startOfWindow, type TimeWindow } from "../../src/domain/policy/decide/window.ts";
import type { Facts, LimitFact, PolicyDocument } from "../../src/domain/policy/policy-types.ts";

const NOW = Date.parse("2026-03-29T12:00:00Z");
const PRINCIPAL = { key_id: "k-1", name: "bot", agent_id: null, owner: null };

function compile(...limits: object[]): CompiledPolicySet {
  return compileAll({ policy: "p", rules: [{ name: "all", effect: "allow" }], limits: limits as never });
}
function compileAll(...documents: PolicyDocument[]): CompiledPolicySet {
  return compilePolicySet(
    buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
  );
}
const request = (params: JsonObject = {}, tool = "pay") => ({
  agent_id: "a-1",
  tool,
  operation: "send",
  params,
  context: {},
});
/** Usage of the set's only limit. */
const facts = (compiled: CompiledPolicySet, used: number, other: Partial<LimitFact> = {}): Facts => {
  const [limit] = compiled.policies.flatMap(({ limits }) => limits);
  assert.ok(limit !== undefined);
  return {
    principal: PRINCIPAL,
    limits: [{ policy: "p", limit: limit.rule.name, basis: limit.basis, used, ...other }],
  };
};

describe("the use of an action", () => {
  const one = (limit: object, params: JsonObject = {}, tool = "pay") =>
    findMatchedLimits(
      new Evaluation(
        compile({ name: "l", count: 1, window: "1h", ...limit }),
        request(params, tool),
        { principal: PRINCIPAL },
        NOW,
      ),
    );

  test("has a subject: the agent, the key, a value of the request, or all together", () => {
    assert.deepEqual(one({})[0]?.subject, "");
    assert.deepEqual(one({ per: "agent" })[0]?.subject, "a-1");
    assert.deepEqual(one({ per: "key" })[0]?.subject, "k-1");
    assert.deepEqual(one({ per: "params.customer" }, { customer: "c 7" })[0]?.subject, "c 7");
    assert.deepEqual(one({ per: "params.customer" }, { customer: 7 })[0]?.subject, "7");
    assert.deepEqual(one({ per: "params.customer + '/' + agent" }, { customer: "c" })[0]?.subject, "c/a-1");
  });

  test("has a short, printable subject, which cannot be confused with another one by looking like its digest", () => {
    const of = (customer: string): string => one({ per: "params.customer" }, { customer })[0]?.subject ?? "";
    const [long, control, quoted] = [of("x".repeat(129)), of("a\u0000b"), of('"')];
    for (const subject of [long, control, quoted]) assert.match(subject, /^sha256:[0-9a-f]{64}$/);
    assert.equal(of("x".repeat(128)), "x".repeat(128));
    assert.notEqual(of(long), long);
  });

  test("exists only if the limit applies", () => {
    for (const limit of [{ tool: "other" }, { operation: "get*" }, { agent: "b-*" }, { when: "params.amount > 5" }])
      assert.deepEqual(one(limit, { amount: 5 }), []);
    assert.equal(
      one({ tool: ["x", "pa*"], operation: "send", agent: "a-1", when: "params.amount > 5" }, { amount: 6 }).length,
      1,
    );
    // A limit without a tool makes its policy apply to every tool.
    assert.equal(one({}, {}, "unheard of").length, 1);
  });

  test("has an amount in whole millionths", () => {
    const amount = (value: unknown): number | undefined =>
      findMatchedLimits(
        new Evaluation(
          compile({ name: "l", window: "1h", sum: "params.amount", at_most: 1 }),
          request({ amount: value as never }),
          { principal: PRINCIPAL },
          NOW,
        ),
      )[0]?.amount;
    assert.deepEqual(
      [amount(1), amount(0.1), amount(1.1), amount(0), amount(1e9)],
      [MICROS_PER_UNIT, 100_000, 1_100_000, 0, 1e15],
    );
    // Rounded up, so that small amounts add up to something.
    assert.deepEqual([amount(1e-8), amount(4e-7), amount(0.0000014), amount(0.000001), amount(-0)], [1, 1, 2, 1, 0]);
    for (let n = 1; n < 5000; n++) assert.equal(amount((n * 7919) / MICROS_PER_UNIT), n * 7919);
    for (const bad of [-1, 1e9 + 1, "5", null]) assert.equal(amount(bad), undefined);
  });
});

describe("a decision", () => {
  const counted = compile({ name: "l", per: "agent", count: 2, window: "1h" });
  const summed = compile({
    name: "s",
    sum: "params.amount",
    at_most: 0.3,
    window: "day",
    effect: "require_approval",
    risk: "high",
    approval: { quorum: 2, notify: ["boss"] },
  });

  test("allows up to the limit and not beyond", () => {
    assert.equal(decide(counted, request(), facts(counted, 1), NOW).effect, "allow");
    const beyond = decide(counted, request(), facts(counted, 2), NOW);
    assert.deepEqual(
      [beyond.effect, beyond.rule, beyond.reason_code, beyond.policy],
      ["deny", "l", "LIMIT_EXCEEDED", "p"],
    );
    // Tenths that do not add up in binary.
    assert.equal(decide(summed, request({ amount: 0.1 }), facts(summed, 200_000), NOW).effect, "allow");
    const asks = decide(summed, request({ amount: 0.1 }), facts(summed, 200_001), NOW);
    assert.deepEqual(
      [asks.effect, asks.risk_level, asks.approval?.quorum, asks.approval?.notify],
      ["require_approval", "high", 2, ["boss"]],
    );
  });

  test("denies if the usage is unknown or cannot be evaluated", () => {
    for (const [compiled, params, known] of [
      [counted, {}, { principal: PRINCIPAL }],
      [counted, {}, facts(counted, 0, { basis: "another" })],
      [summed, { amount: -5 }, facts(summed, 0)],
      [summed, {}, facts(summed, 0)],
    ] as const) {
      const { effect, reason_code } = decide(compiled, request(params), known, NOW);
      assert.deepEqual([effect, reason_code], ["deny", "CONDITION_ERROR"]);
    }
  });

  test("takes the strictest of rules and limits, and the terms of all that require approval", () => {
    const both = compileAll({
      policy: "p",
      rules: [{ name: "ask", effect: "require_approval", approval: { quorum: 1, expires_in: "1h", notify: ["a"] } }],
      limits: [
        { name: "s", count: 0, window: "1h", effect: "require_approval", approval: { quorum: 3, notify: ["b"] } },
      ],
    });
    const { rule, approval } = decide(both, request(), facts(both, 0), NOW);
    assert.deepEqual(
      [rule, approval],
      [
        "ask",
        {
          approvers: [createQuorumPlan(3)],
          mode: "maker_checker",
          quorum: 3,
          expires_in_ms: 3_600_000,
          valid_for_ms: 3_600_000,
          rejection_holds_ms: 86_400_000,
          notify: ["a", "b"],
        },
      ],
    );
    const denying = compileAll({
      policy: "p",
      rules: [{ name: "no", effect: "deny" }],
      limits: [{ name: "s", count: 0, window: "1h" }],
    });
    assert.equal(decide(denying, request(), facts(denying, 0), NOW).rule, "no");
    const alone = compileAll({ policy: "p", rules: [], limits: [{ name: "s", count: 1, window: "1h" }] });
    assert.equal(decide(alone, request(), facts(alone, 0), NOW).reason_code, "NO_MATCHING_RULE");
  });

  test("lists one result of a policy in shadow mode: its strictest", () => {
    const shadow = compileAll(
      {
        policy: "p",
        mode: "shadow",
        rules: [{ name: "all", effect: "allow" }],
        limits: [{ name: "l", count: 0, window: "1h" }],
      },
      { policy: "q", rules: [{ name: "ok", effect: "allow" }] },
    );
    const { effect, shadow: said } = decide(shadow, request(), facts(shadow, 0), NOW);
    assert.deepEqual(
      [effect, said.map((one) => [one.policy, one.rule, one.effect, one.reason_code])],
      ["allow", [["p", "l", "deny", "LIMIT_EXCEEDED"]]],
    );
  });

  test("assumes no usage for policies that were not active, and keeps recorded usage", () => {
    const known = facts(counted, 2);
    assert.equal(withAssumedActivation(counted, request(), known, NOW), known);
    assert.equal(
      decide(counted, request(), withAssumedActivation(counted, request(), { principal: PRINCIPAL }, NOW), NOW).effect,
      "allow",
    );
  });

  test("does not use the count of a limit of the same name that counts something else", () => {
    const bases = [
      { count: 1 },
      { count: 1, per: "agent" },
      { count: 1, per: "params.customer" },
      { sum: "params.amount", at_most: 1 },
      { sum: "params.fee", at_most: 1 },
      { sum: "params.amount", at_most: 1, per: "agent" },
    ].map((limit) => compile({ name: "l", window: "1h", ...limit }).policies[0]?.limits[0]?.basis);
    assert.equal(new Set(bases).size, bases.length);
    const [before, after] = [
      compile({ name: "l", per: "agent", count: 1, window: "1h" }),
      compile({ name: "l", per: "agent", count: 3, window: "7d" }),
    ];
    assert.equal(withAssumedActivation(after, request(), facts(before, 2), NOW).limits?.[0]?.used, 2);
    assert.deepEqual(
      withAssumedActivation(
        compile({ name: "l", per: "params.customer", count: 1, window: "1h" }),
        request({ customer: "c" }),
        facts(before, 2),
        NOW,
      ).limits?.map(({ used }) => used),
      [2, 0],
    );
  });

  test("is explained with the usage", () => {
    const { policies } = explain(counted, request(), facts(counted, 2), NOW);
    assert.deepEqual(policies[0]?.limits, [
      {
        limit: "l",
        effect: "deny",
        most: 2,
        outcome: "exceeded",
        subject: "a-1",
        used: 2,
        error: null,
        answer: { effect: "deny", reason_code: "LIMIT_EXCEEDED" },
      },
    ]);
  });
});

describe("windows", () => {
  const start = (text: string, now: string, zone?: string): string =>
    new Date(startOfWindow(parseWindow(text, zone) as TimeWindow, Date.parse(now))).toISOString();

  test("slide, or begin with the hour, day, week and month of their zone", () => {
    assert.equal(start("24h", "2026-03-29T12:00:00.000Z"), "2026-03-28T12:00:00.001Z");
    assert.equal(start("hour", "2026-03-29T12:34:56Z"), "2026-03-29T12:00:00.000Z");
    assert.equal(start("day", "2026-03-29T12:34:56Z"), "2026-03-29T00:00:00.000Z");
    assert.equal(start("week", "2026-03-29T12:34:56Z"), "2026-03-23T00:00:00.000Z");
    assert.equal(start("week", "2026-03-30T00:00:00Z"), "2026-03-30T00:00:00.000Z");
    assert.equal(start("month", "2026-03-29T12:34:56Z"), "2026-03-01T00:00:00.000Z");
    // The clocks of Berlin went forward that night: midnight was at 23:00 UTC, and noon is at 10:00 UTC.
    assert.equal(start("day", "2026-03-29T10:00:00Z", "Europe/Berlin"), "2026-03-28T23:00:00.000Z");
    assert.equal(start("day", "2026-10-25T10:00:00Z", "Europe/Berlin"), "2026-10-24T22:00:00.000Z");
    assert.equal(start("month", "2026-03-31T23:30:00Z", "Europe/Berlin"), "2026-03-31T22:00:00.000Z");
    assert.equal(start("hour", "2026-03-29T12:40:00Z", "Asia/Kolkata"), "2026-03-29T12:30:00.000Z");
  });

  test("a day with two midnights begins with the first, so that all its hours count", () => {
    // At 01:00 the clocks go back to 00:00.
    for (const now of [
      "2026-11-01T04:00:00Z",
      "2026-11-01T04:30:00Z",
      "2026-11-01T05:00:00Z",
      "2026-11-01T17:00:00Z",
      "2026-11-02T04:59:59Z",
    ])
      assert.equal(start("day", now, "America/Havana"), "2026-11-01T04:00:00.000Z", now);
    assert.equal(start("month", "2026-11-15T12:00:00Z", "America/Havana"), "2026-11-01T04:00:00.000Z");
    assert.equal(start("day", "2026-10-25T12:00:00Z", "Atlantic/Azores"), "2026-10-25T00:00:00.000Z");
    // By three hours.
    assert.equal(start("day", "2023-03-09T12:00:00Z", "Antarctica/Casey"), "2023-03-08T13:00:00.000Z");
    // Back over midnight into the previous day, and forward over it.
    assert.equal(start("day", "2026-10-30T12:00:00Z", "Africa/Cairo"), "2026-10-29T22:00:00.000Z");
    assert.equal(start("day", "2026-10-29T21:30:00Z", "Africa/Cairo"), "2026-10-28T21:00:00.000Z");
    assert.equal(start("day", "2026-04-24T12:00:00Z", "Africa/Cairo"), "2026-04-23T22:00:00.000Z");
    // An hour that occurs twice counts as two hours.
    assert.equal(start("hour", "2026-11-01T05:30:00Z", "America/Havana"), "2026-11-01T05:00:00.000Z");
  });

  test("a use is stored as long as it can count", () => {
    for (const [text, zone] of [
      ["24h"],
      ["hour", "Asia/Kolkata"],
      ["day", "Europe/Berlin"],
      ["day", "America/Havana"],
      ["month", "America/Havana"],
      ["week", "America/New_York"],
      ["month", "Europe/Berlin"],
    ] as const) {
      const window = parseWindow(text, zone) as TimeWindow;
      for (let at = Date.parse("2026-01-01T00:30:00Z"); at < Date.parse("2027-01-01T00:00:00Z"); at += 7 * 3_600_000) {
        const end = endOfWindow(window, at);
        assert.ok(startOfWindow(window, at) <= at && at < end);
        assert.ok(
          startOfWindow(window, end) > at,
          `${text} ${zone}: a use at ${new Date(at).toISOString()} still counts at ${new Date(end).toISOString()}`,
        );
      }
    }
  });
});

describe("in a file", () => {
  const faults = (limits: string): string[] =>
    parsePolicies(`policy: p\nrules: []\nlimits:\n${limits}`, "f").faults.map(
      ({ line, message }) => `${line}: ${message}`,
    );

  test("faults are reported at their line", () => {
    assert.deepEqual(faults("  - { name: l, window: 1h }"), [
      '4: limits.0: the limit "l" needs either count, or sum with at_most',
    ]);
    assert.deepEqual(faults("  - { name: l, window: 1h, count: 1, sum: params.x }"), [
      '4: limits.0: the limit "l" needs either count, or sum with at_most',
    ]);
    assert.deepEqual(faults("  - { name: l, window: 1h, sum: params.x }"), [
      "4: limits.0.sum: sum and at_most go together",
    ]);
    assert.deepEqual(faults("  - { name: l, window: fortnight, count: 1 }"), [
      '4: limits.0.window: "fortnight" is not a window such as 1h, 24h, 7d, day or month',
    ]);
    assert.deepEqual(faults("  - { name: l, window: 1h, time_zone: UTC, count: 1 }"), [
      "4: limits.0.window: time_zone has no meaning with a window that slides; use it with hour, day, week or month",
    ]);
    assert.deepEqual(faults("  - { name: l, window: day, time_zone: Mars/Olympus, count: 1 }"), [
      '4: limits.0.window: "Mars/Olympus" is not a time zone such as Europe/Berlin',
    ]);
    assert.match(
      faults("  - { name: l, window: 1h, count: 1, per: 'params.' }")[0] ?? "",
      /^4: limits.0.per: the expression of per cannot be read/,
    );
    assert.match(faults("  - { name: l, window: 1h, count: 1, effect: allow }")[0] ?? "", /^4: limits.0.effect/);
    assert.match(
      faults("  - { name: l, window: 1h, count: 1 }\n  - { name: l, window: 1h, count: 1 }")[0] ?? "",
      /^5: limits.1.name: the limit "l" appears twice/,
    );
    assert.match(
      faults("  - { name: l, window: 1h, count: 1, approval: { quorum: 2 } }")[0] ?? "",
      /approval has no meaning with the effect "deny"/,
    );
  });

  test("changes of limits are distinguished", () => {
    const document = (limits: PolicyDocument["limits"]): PolicyDocument => ({
      policy: "p",
      rules: [],
      ...(limits === undefined ? {} : { limits }),
    });
    const before = document([
      { name: "a", count: 1, window: "1h" },
      { name: "b", sum: "params.x", at_most: 5, window: "day", per: "agent" },
    ]);
    const after = document([
      { name: "a", count: 2, window: "1h" },
      { name: "c", count: 3, window: "7d" },
    ]);
    assert.deepEqual(
      diffPolicies(before, after).map(({ summary }) => summary),
      [
        'the limit "b" is gone: it was at most 5 as the sum of params.x for each agent in day',
        'the limit "a" has another count: 2; it was 1',
        'the limit "c" is new: at most 3 actions in 7d',
      ],
    );
    assert.deepEqual(diffPolicies(before, before), []);
  });

  test("a set has at most 50", () => {
    const limits = Array.from({ length: 51 }, (_, i) => ({ name: `l${i}`, count: 1, window: "1h" }));
    assert.throws(() => compileAll({ policy: "p", rules: [], limits }), /is the last of 51 limits; at most 50/);
  });
});

describe("a limit and the rules", () => {
  const asking = { name: "l", effect: "require_approval", count: 0, window: "1h" } as const;
  const allowing: PolicyDocument = { policy: "q", rules: [{ name: "all", effect: "allow", tool: "pay" }] };
  const limiting: PolicyDocument = { policy: "p", rules: [], limits: [asking] };
  const used = (compiled: CompiledPolicySet) => facts(compiled, 0);
  const decided = (compiled: CompiledPolicySet, tool = "pay") =>
    decide(compiled, request({}, tool), used(compiled), NOW);

  test("a limit that requires approval does so only if a rule has an answer", () => {
    const alone = decided(compileAll(limiting));
    assert.deepEqual([alone.effect, alone.reason_code], ["deny", "NO_MATCHING_RULE"]);
    assert.equal(decided(compileAll(limiting, allowing)).rule, "l");
    assert.equal(decided(compileAll(limiting, allowing)).effect, "require_approval");
    assert.equal(decided(compileAll(limiting, allowing), "other").reason_code, "NO_MATCHING_RULE");
    // The answer of a policy in shadow mode does not count either.
    const shadow = decided(compileAll(limiting, { ...allowing, mode: "shadow" }));
    assert.deepEqual([shadow.effect, shadow.reason_code], ["deny", "NO_MATCHING_RULE"]);
  });

  test("a limit that denies does so without any rule", () => {
    const denied = decided(compileAll({ ...limiting, limits: [{ ...asking, effect: "deny" }] }));
    assert.deepEqual([denied.effect, denied.reason_code, denied.rule], ["deny", "LIMIT_EXCEEDED", "l"]);
  });

  test("a limit is evaluated once for a decision, and costs no rule its steps", () => {
    // Two of them cost more than one condition can spend.
    const costly = "params.l.all(x, params.l.all(y, x + y >= 0))";
    const params = { l: Array.from({ length: 220 }, (_, i) => i) };
    const compiled = compileAll({ ...limiting, limits: [{ ...asking, count: 5, when: costly }] }, allowing);
    const evaluation = new Evaluation(compiled, request(params), { principal: PRINCIPAL }, NOW);
    assert.equal(findMatchedLimits(evaluation).length, 1);
    const matches = [...evaluation.limitMatches.values()];
    const decision = decideEvaluation(evaluation, facts(compiled, 0));
    assert.equal(decision.effect, "allow");
    const [again] = evaluation.limitMatches.values();
    assert.equal(again, matches[0], "the limit is not evaluated a second time");
    assert.deepEqual(decide(compiled, request(params), facts(compiled, 0), NOW), decision);
    const both = compilePolicySet({
      ...compiled.document,
      policies: [
        ...compiled.document.policies.slice(0, 1),
        {
          policy: "q",
          version: 1,
          definition: { ...allowing, rules: [{ name: "all", effect: "allow", when: costly }] },
        },
      ],
    });
    const begun = new Evaluation(both, request(params), { principal: PRINCIPAL }, NOW);
    findMatchedLimits(begun);
    const decided = decideEvaluation(begun, facts(both, 0));
    assert.equal(decided.effect, "allow");
    assert.deepEqual(decide(both, request(params), facts(both, 0), NOW), decided);
  });
});
