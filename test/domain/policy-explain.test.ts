import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ActionRequest } from "../../src/domain/actions.ts";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import { Activation, compileCondition } from "../../src/domain/policy/condition/condition.ts";
import { evaluateConditionParts, type ConditionPart } from "../../src/domain/policy/condition/condition-parts.ts";
import { evaluateAllPolicies, decide } from "../../src/domain/policy/decide/decide.ts";
import { explain } from "../../src/domain/policy/decide/explain.ts";
import { withAssumedActivation } from "../../src/domain/policy/decide/limit-facts.ts";
import type {
  Effect,
  Facts,
  LimitDocument,
  PolicyDocument,
  RuleDocument,
} from "../../src/domain/policy/policy-types.ts";
import { createRandom } from "../support/random.ts";
import { action, compile, FACTS, NOW, policy, rule } from "../support/policy.ts";

const CONDITIONS = [
  "params.n > 5",
  "has(params.n) && params.n <= 5",
  "params.nope == 1",
  "has(params.nope) || params.n == 3",
  'agent.startsWith("a")',
  "params.list.exists(i, i > 3)",
  "params.list.all(i, i.price < 3)",
  "size(params.list.map(i, i + 1)) == 3",
  "!(params.n in [1, 2, 3])",
  'context.region == "eu" ? params.n > 1 : params.n > 8',
  "principal.owner == null",
  'now < timestamp("2026-06-01T00:00:00Z") && params.n % 2 == 0',
  "params.text + 1 == 2",
  'params.text.matches("^[a-m]")',
  "params.list.exists_one(i, params.list.filter(j, j > i).size() == 1)",
  "params.big.all(a, params.big.all(b, a + b > 0))",
  "params.n",
];
const EFFECTS: Effect[] = ["allow", "deny", "require_approval"];

describe("an explanation", () => {
  it("matches the decision, policy by policy, on many requests", () => {
    const { random, pick } = createRandom(7);
    const big = Array.from({ length: 400 }, (_, i) => i + 1);
    const seen = new Set<string>();
    for (let round = 0; round < 100; round++) {
      const rules = (): RuleDocument[] =>
        Array.from({ length: 1 + random(4) }, (_, i) =>
          rule(`r${i}`, pick(EFFECTS), {
            ...(random(2) === 0 ? { tool: pick(["t", "u", "t*", ["t", "u"], "*", ["v?", "t"]]) } : {}),
            ...(random(3) === 0 ? { operation: pick(["o", "p*", ["o", "p"]]) } : {}),
            ...(random(4) === 0 ? { agent: pick(["a1", "b*"]) } : {}),
            ...(random(3) > 0 ? { when: pick(CONDITIONS) } : {}),
          }),
        );
      const limits = (): LimitDocument[] =>
        Array.from({ length: 1 + random(2) }, (_, i) => ({
          name: `l${i}`,
          window: "1h",
          effect: pick(["deny", "require_approval"] as const),
          ...(random(2) === 0
            ? { count: random(3) }
            : { sum: pick(["params.n", "params.nope", "params.n * 2"]), at_most: random(12) }),
          ...(random(3) === 0 ? { tool: pick(["t", "u*"]) } : {}),
          ...(random(3) === 0 ? { when: pick(CONDITIONS) } : {}),
          ...(random(3) === 0 ? { per: pick(["agent", "params.n", "params.list"]) } : {}),
        }));
      const documents: PolicyDocument[] = Array.from({ length: random(5) }, (_, i) =>
        policy(`p${i}`, rules(), {
          ...(random(3) === 0 ? { limits: limits() } : {}),
          ...(random(4) === 0 ? { mode: "shadow" as const } : {}),
          ...(random(3) === 0
            ? { applies_to: pick([{ tools: ["t"] }, { agents: ["a*"] }, { tools: ["u*"], agents: ["b1"] }]) }
            : {}),
        }),
      );
      const compiled = compile(...documents);
      for (let i = 0; i < 10; i++) {
        const params: JsonObject = {
          ...(random(5) > 0 ? { n: random(10) } : {}),
          list: pick<JsonValue>([[1, 2, 4], [], [{ price: 1 }], "text"]),
          text: pick(["abc", "xyz"]),
          ...(random(20) === 0 ? { big } : {}),
        };
        const request: ActionRequest = {
          ...action(pick(["t", "u", "tt", "v1"]), pick(["o", "p", "pp"]), params, pick(["a1", "b1"])),
          context: random(2) === 0 ? { region: "eu" } : {},
        };
        const known: Facts = {
          ...FACTS,
          ...(random(30) === 0 ? { agent: { suspended: true, allowed_tools: null } } : {}),
        };
        const facts =
          random(8) === 0
            ? known
            : withAssumedActivation(compiled, request, known, NOW, { l0: random(4), l1: random(12) });
        const found = explain(compiled, request, facts, NOW);
        const decision = decide(compiled, request, facts, NOW);
        assert.deepEqual(found.decision, decision);
        seen.add(decision.reason_code);
        if (decision.reason_code === "AGENT_SUSPENDED") {
          assert.deepEqual(found.policies, []);
          continue;
        }
        const answers = found.policies.flatMap((one) => [
          ...(one.answer === null ? [] : [{ policy: one.policy, mode: one.mode, ...one.answer }]),
          ...one.limits.flatMap(({ limit, answer }) =>
            answer === null ? [] : [{ policy: one.policy, mode: one.mode, rule: limit, ...answer }],
          ),
        ]);
        const expected = evaluateAllPolicies(compiled, request, facts, NOW).map((finding) => ({
          policy: finding.policy.name,
          rule: finding.rule.name,
          effect: finding.effect,
          reason_code: finding.reason_code,
        }));
        assert.deepEqual(
          answers.map(({ policy: name, rule: by, effect, reason_code }) => ({
            policy: name,
            rule: by,
            effect,
            reason_code,
          })),
          expected,
        );
        const enforced = answers.filter(({ mode }) => mode === "enforce");
        // A limit that requires approval is not an answer by itself.
        const answered = enforced.some(({ effect, reason_code }) => effect === "deny" || reason_code === "POLICY_RULE");
        const strictest = ["deny", "require_approval", "allow"]
          .map((effect) => enforced.find((one) => answered && one.effect === effect))
          .find((one) => one !== undefined);
        assert.deepEqual(
          [
            strictest?.effect ?? "deny",
            strictest?.policy ?? null,
            strictest?.rule ?? null,
            strictest?.reason_code ?? decision.reason_code,
          ],
          [decision.effect, decision.policy, decision.rule, decision.reason_code],
        );
        assert.deepEqual(
          found.policies.filter(({ decides }) => decides).map((one) => one.policy),
          decision.policy === null ? [] : [decision.policy],
        );
        for (const { condition } of found.policies.flatMap((one) => one.rules)) {
          if (condition === null || condition.error?.code === "CONDITION_LIMIT") continue;
          const [whole] = condition.parts as [ConditionPart];
          if (condition.value !== null) assert.equal(whole.value, String(condition.value), condition.source);
          else assert.ok(whole.error !== null || !["true", "false"].includes(whole.value ?? ""), condition.source);
        }
      }
    }
    assert.deepEqual(
      [...seen].sort(),
      [
        "AGENT_SUSPENDED",
        "CONDITION_ERROR",
        "CONDITION_LIMIT",
        "LIMIT_EXCEEDED",
        "NO_ACTIVE_POLICY",
        "NO_MATCHING_RULE",
        "POLICY_RULE",
      ],
      "every way to come out was there",
    );
  });

  it("names the matcher that failed, rules that were not reached and policies that do not apply", () => {
    const compiled = compile(
      policy("a", [
        rule("one", "allow", { tool: "x", operation: "o*" }),
        rule("two", "deny", { agent: ["s*", "t*"] }),
        rule("three", "allow"),
      ]),
      policy("b", [rule("r", "deny")], { applies_to: { tools: ["y"], agents: ["*"] } }),
    );
    const [a, b] = explain(compiled, action("t", "op"), FACTS, NOW).policies;
    assert.deepEqual(
      a?.rules.map(({ rule: name, outcome, matchers }) => [
        name,
        outcome,
        matchers.map(({ field, matches }) => `${field} ${matches}`),
      ]),
      [
        ["one", "passed", ["tool false", "operation true"]],
        ["two", "matched", ["agent true"]],
        ["three", "not_reached", []],
      ],
    );
    assert.deepEqual(
      [b?.applies, b?.answer, b?.rules, b?.matchers],
      [
        false,
        null,
        [],
        [
          { field: "tool", patterns: ["y"], value: "t", matches: false },
          { field: "agent", patterns: ["*"], value: "support-1", matches: true },
        ],
      ],
    );
  });
});

describe("the parts of a condition", () => {
  const parts = (source: string, params: JsonObject): string[] => {
    assert.ok(compileCondition(source).ok, source);
    return evaluateConditionParts(source, new Activation(action("t", "o", params), FACTS, NOW)).map(
      ({ expression, depth, element, value, error }) =>
        `${" ".repeat(depth)}${element === null ? "" : `[${element}] `}${expression} -> ${error === null ? value : `! ${error}`}`,
    );
  };

  it("are its expressions with their values, without constants, and chains of && in one step", () => {
    assert.deepEqual(
      parts('params.a + 1 > 2 && params.b == "x" && !has(params.c) && now > timestamp("2026-01-01T00:00:00Z")', {
        a: 2.5,
        b: "y",
      }),
      [
        'params.a + 1 > 2 && params.b == "x" && !has(params.c) && now > timestamp("2026-01-01T00:00:00Z") -> false',
        ' params.a + 1 > 2 -> ! "+" cannot take (double, int)',
        '  params.a + 1 -> ! "+" cannot take (double, int)',
        "   params.a -> 2.5",
        ' params.b == "x" -> false',
        '  params.b -> "y"',
        " !has(params.c) -> true",
        "  has(params.c) -> false",
        ' now > timestamp("2026-01-01T00:00:00Z") -> true',
        "  now -> 2026-01-15T10:00:00.000Z",
        '  timestamp("2026-01-01T00:00:00Z") -> 2026-01-01T00:00:00.000Z',
      ],
    );
  });

  it("evaluates the elements of a comprehension one by one, for the first ten", () => {
    assert.deepEqual(parts("params.l.all(i, i.p < 3)", { l: [{ p: 1 }, { q: 2 }] }), [
      'params.l.all(i, i.p < 3) -> ! there is no field "p"; test for it with has()',
      ' params.l -> [{"p": 1}, {"q": 2}]',
      ' [i = {"p": 1}] i.p < 3 -> true',
      "  i.p -> 1",
      ' [i = {"q": 2}] i.p < 3 -> ! there is no field "p"; test for it with has()',
      '  i.p -> ! there is no field "p"; test for it with has()',
      '   i -> {"q": 2}',
    ]);
    const many = parts("params.l.exists(i, params.l.filter(j, j == i).size() > 5)", {
      l: Array.from({ length: 12 }, (_, i) => i),
    });
    assert.equal(many.at(-1), " [2 more] params.l.filter(j, j == i).size() > 5 -> ! only the first 10 are evaluated");
    assert.ok(many.includes("   params.l.filter(j, j == i) -> [9]"), "the body is evaluated with the outer variable");
    assert.deepEqual(parts("params.m.exists(k, params.m[k] == 2)", { m: { a: 1, b: 2 } }).slice(2, 5), [
      ' [k = "a"] params.m[k] == 2 -> false',
      "  params.m[k] -> 1",
      '   params.m -> {"a": 1, "b": 2}',
    ]);
  });

  it("costs a bounded number of steps, and is cut if it exceeds them", () => {
    const l = Array.from({ length: 3_000 }, (_, i) => i);
    const costly = parts("params.l.all(i, params.l.all(j, i + j >= 0))", { l });
    assert.match(costly[0] ?? "", /-> ! it takes too many steps$/);
    assert.ok(costly.every((line) => line.length < 400));
    const long = parts("params.t.size() > 1", { t: "x".repeat(100_000) });
    assert.ok((long.at(-1) ?? "").length < 250, long.at(-1));
  });

  it("includes all policies if a stop names one of them, and none if everything is stopped", () => {
    const compiled = compile(policy("asked", [rule("r", "allow")]), policy("named", [rule("s", "allow")]));
    const explained = (stop: string | null) =>
      explain(
        compiled,
        action("t", "o"),
        { ...FACTS, bars: [{ code: "STOPPED", id: "s", policy: stop, reason: "a stop is in effect" }] },
        NOW,
      );
    const one = explained("named");
    assert.equal(one.decision.reason_code, "STOPPED");
    assert.deepEqual(
      one.policies.map(({ policy: name, answer, decides }) => [name, answer?.effect, decides]),
      [
        ["asked", "allow", false],
        ["named", "allow", false],
      ],
    );
    const all = explained(null);
    assert.deepEqual([all.decision.reason_code, all.policies], ["STOPPED", []]);
  });
});
