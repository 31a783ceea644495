import assert from "node:assert/strict";
import test from "node:test";
import { createQuorumPlan } from "../../src/domain/approvers.ts";
import { canonicalText } from "../../src/domain/canonical.ts";
import type { JsonValue } from "../../src/domain/json.ts";
import { emptyPolicySet } from "../../src/domain/policy/compile/compile.ts";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import type { ApprovalTerms, Decision, Effect, Facts, PolicyDocument } from "../../src/domain/policy/policy-types.ts";
import { action, compile, FACTS, NOW, policy, rule } from "../support/policy.ts";

const decideOn = (documents: PolicyDocument[], request = action("crm", "update"), facts: Facts = FACTS): Decision =>
  decide(compile(...documents), request, facts, NOW);
/** `policy/rule effect`, or the reason code if no rule decided. */
const verdict = ({ effect, policy: by, rule: which, reason_code }: Decision): string =>
  by === null ? `${effect} ${reason_code}` : `${effect} ${by}/${which}`;

test("inside a policy the first rule that matches decides", () => {
  const table: [rules: PolicyDocument["rules"], expected: string][] = [
    [[rule("a", "allow"), rule("b", "deny")], "allow p/a"],
    [[rule("a", "deny", { tool: "x" }), rule("b", "allow")], "allow p/b"],
    [[rule("a", "deny", { operation: "del*" }), rule("b", "allow", { operation: ["get", "upd*"] })], "allow p/b"],
    [
      [rule("a", "deny", { agent: "billing-*" }), rule("b", "require_approval", { agent: ["billing-*", "support-?"] })],
      "require_approval p/b",
    ],
    [[rule("a", "deny", { when: "false" }), rule("b", "allow", { when: "true" })], "allow p/b"],
    [[rule("a", "allow", { when: "params.nope" }), rule("b", "allow")], "deny p/a"],
    [[rule("a", "allow"), rule("b", "deny", { when: "params.nope" })], "allow p/a"],
    // Rules with globs and rules that name the tool have separate indexes, but keep their order.
    [[rule("a", "deny", { tool: "cr?" }), rule("b", "allow", { tool: "crm" })], "deny p/a"],
    [[rule("a", "allow", { tool: "crm" }), rule("b", "deny", { tool: "*" })], "allow p/a"],
    [
      [rule("a", "deny", { tool: ["x", "y*"] }), rule("b", "allow", { tool: ["x", "crm"] }), rule("c", "deny")],
      "allow p/b",
    ],
    [
      [
        rule("a", "deny", { tool: "x" }),
        rule("b", "require_approval", { tool: ["crm", "crm"] }),
        rule("c", "deny", { tool: "crm" }),
      ],
      "require_approval p/b",
    ],
  ];
  for (const [rules, expected] of table)
    assert.equal(verdict(decideOn([policy("p", rules)])), expected, JSON.stringify(rules));
});

test("without a matching rule the action is denied", () => {
  assert.equal(verdict(decide(emptyPolicySet(), action("crm", "get"), FACTS, NOW)), "deny NO_ACTIVE_POLICY");
  assert.equal(verdict(decideOn([policy("p", [rule("a", "allow", { tool: "other" })])])), "deny NO_MATCHING_RULE");
  assert.equal(
    verdict(decideOn([policy("p", [rule("a", "allow")], { applies_to: { tools: ["other"] } })])),
    "deny NO_MATCHING_RULE",
  );
  const denied = decideOn([policy("p", [rule("a", "allow", { tool: "other" })])]);
  assert.deepEqual(denied, {
    effect: "deny",
    reason: 'no rule of the active policies matches "crm" "update", so it is denied',
    reason_code: "NO_MATCHING_RULE",
    risk_level: null,
    policy: null,
    policy_version: null,
    rule: null,
    approval: null,
    shadow: [],
  });
});

test("applies_to restricts a policy by tool and agent, both", () => {
  const table: [applies_to: PolicyDocument["applies_to"], applies: boolean][] = [
    [{}, true],
    [{ tools: ["crm"] }, true],
    [{ tools: ["c*"] }, true],
    [{ tools: ["billing", "cr?"] }, true],
    [{ tools: ["CRM"] }, true],
    [{ agents: ["support-*"] }, true],
    [{ agents: ["billing-*"] }, false],
    [{ tools: ["crm"], agents: ["billing-*"] }, false],
    [{ tools: ["billing"], agents: ["support-*"] }, false],
  ];
  for (const [applies_to, applies] of table) {
    for (const tool of [undefined, "crm", "*"]) {
      const document = policy(
        "p",
        [rule("a", "allow", tool === undefined ? {} : { tool })],
        applies_to === undefined ? {} : { applies_to },
      );
      assert.equal(
        decideOn([document]).effect,
        applies ? "allow" : "deny",
        `${JSON.stringify(applies_to)} and tool ${tool}`,
      );
    }
  }
});

test("across policies the strictest effect wins, in any order of files", () => {
  const effects: Effect[] = ["allow", "require_approval", "deny"];
  for (const a of effects) {
    for (const b of effects) {
      for (const c of effects) {
        const documents = [
          policy("one", [rule("x", a, { risk: "low" })]),
          policy("two", [rule("y", b)]),
          policy("three", [rule("z", c, { tool: "*" })]),
        ];
        const strictest = [...effects].reverse().find((effect) => [a, b, c].includes(effect));
        const found = permutations(documents).map((order) => decideOn(order));
        assert.equal(found[0]?.effect, strictest);
        for (const one of found) assert.deepEqual(one, found[0]);
      }
    }
  }
});

test("among equals the policy whose name sorts first is named", () => {
  for (const order of permutations([
    policy("b", [rule("x", "deny")]),
    policy("a", [rule("y", "deny")]),
    policy("c", [rule("z", "allow")]),
  ])) {
    assert.equal(verdict(decideOn(order)), "deny a/y");
  }
});

test("the terms of several policies that require approval are merged to the strictest", () => {
  const ask = (
    name: string,
    approval: PolicyDocument["rules"][number]["approval"],
    risk?: "low" | "high",
  ): PolicyDocument =>
    policy(name, [
      rule("ask", "require_approval", {
        ...(approval === undefined ? {} : { approval }),
        ...(risk === undefined ? {} : { risk }),
      }),
    ]);
  assert.deepEqual(decideOn([ask("a", undefined)]).approval, {
    approvers: [createQuorumPlan(1)],
    mode: "maker_checker",
    quorum: 1,
    expires_in_ms: 86_400_000,
    valid_for_ms: 3_600_000,
    rejection_holds_ms: 86_400_000,
    notify: [],
  });
  const merged = decideOn([
    ask("a", { quorum: 2, valid_for: "7d", rejection_holds: "1h", notify: ["ops", "finance"] }, "low"),
    ask("b", { expires_in: "1h30m", valid_for: "15m", rejection_holds: "none", notify: ["legal", "finance"] }, "high"),
    policy("c", [rule("fine", "allow", { risk: "critical" })]),
    policy("d", [rule("candidate", "require_approval", { approval: { quorum: 9 } })], { mode: "shadow" }),
  ]);
  assert.deepEqual(merged.approval, {
    approvers: [createQuorumPlan(2)],
    mode: "maker_checker",
    quorum: 2,
    expires_in_ms: 5_400_000,
    valid_for_ms: 900_000,
    rejection_holds_ms: 3_600_000,
    notify: ["finance", "legal", "ops"],
  });
  assert.equal(merged.risk_level, "high");
  assert.equal(verdict(merged), "require_approval a/ask");
  assert.equal(decideOn([ask("a", undefined), policy("b", [rule("no", "deny")])]).approval, null);
});

test("an active rejection turns require_approval into a denial, and changes nothing else", () => {
  const at = new Date(NOW - 1000).toISOString();
  const rejection = {
    action_id: "a",
    approver: "user:alice",
    comment: "use the other tool",
    at,
    until: new Date(NOW + 1).toISOString(),
  };
  const by = (effect: Effect, facts: Facts): Decision =>
    decideOn([policy("p", [rule("r", effect)])], action("crm", "update"), facts);
  const held = { ...FACTS, rejection };
  for (const effect of ["allow", "deny"] as const) assert.deepEqual(by(effect, held), by(effect, FACTS));
  assert.deepEqual(by("require_approval", held), {
    ...by("require_approval", FACTS),
    approval: null,
    effect: "deny",
    reason: `rejected by the user alice at ${at}: use the other tool`,
    reason_code: "EARLIER_REJECTION",
  });
  const over = { ...held, rejection: { ...rejection, until: new Date(NOW).toISOString() } };
  assert.deepEqual(by("require_approval", over), by("require_approval", FACTS));
  const unreadable = { ...held, rejection: { ...rejection, until: "soon" } };
  assert.equal(by("require_approval", unreadable).effect, "require_approval");
});

test("an approval must satisfy the approvers of every policy that requires it", () => {
  const ask = (name: string, approval: ApprovalTerms): PolicyDocument =>
    policy(name, [rule("ask", "require_approval", { approval })]);
  const groups = ask("groups", { approvers: [{ group: "finance" }, { group: "security", count: 2 }] });
  const staged = ask("staged", {
    exclude_requester_groups: true,
    stages: [{ approvers: [{ group: "leads" }] }, { after: "30m", approvers: [{ group: "directors" }] }],
  });
  const { approval } = decideOn([groups, staged, ask("any", { quorum: 3 })]);
  assert.deepEqual(
    [approval?.approvers.length, approval?.quorum, approval?.mode],
    [2, 3, "maker_checker"],
    "three people of any group are implied by three of named groups",
  );
  const confirm = ask("confirm", { mode: "self_confirm" });
  assert.equal(decideOn([confirm]).approval?.mode, "self_confirm");
  assert.equal(decideOn([confirm, ask("any", {})]).approval?.mode, "maker_checker", "the stricter mode wins");
});

test("the duration of a rejection is the rule's, or the service's default", () => {
  const ask = (rejection_holds?: string): PolicyDocument =>
    policy(`p-${rejection_holds ?? "default"}`, [
      rule("ask", "require_approval", rejection_holds === undefined ? {} : { approval: { rejection_holds } }),
    ]);
  const holds = (documents: PolicyDocument[], facts: Facts = FACTS): number | undefined =>
    decideOn(documents, action("crm", "update"), facts).approval?.rejection_holds_ms;
  const set = { ...FACTS, rejection_holds_ms: 60_000 };
  assert.deepEqual(
    [holds([ask()]), holds([ask()], set), holds([ask("2h")], set), holds([ask("none")], set), holds([ask("0s")])],
    [86_400_000, 60_000, 7_200_000, 0, 0],
  );
  assert.equal(holds([ask("none"), ask()], set), 60_000, "the longest of all that ask");
});

test("shadow policies are listed and never enforced", () => {
  const shadow = (name: string, effect: Effect, when?: string): PolicyDocument =>
    policy(name, [rule("s", effect, when === undefined ? {} : { when })], { mode: "shadow" });
  const mixed = decideOn([
    shadow("z", "deny"),
    policy("m", [rule("ok", "allow")]),
    shadow("a", "require_approval"),
    shadow("b", "allow", "params.nope"),
    shadow("c", "allow", "false"),
  ]);
  assert.equal(verdict(mixed), "allow m/ok");
  assert.deepEqual(mixed.shadow, [
    { policy: "a", policy_version: 1, rule: "s", effect: "require_approval", reason_code: "POLICY_RULE" },
    { policy: "b", policy_version: 1, rule: "s", effect: "deny", reason_code: "CONDITION_ERROR" },
    { policy: "z", policy_version: 1, rule: "s", effect: "deny", reason_code: "POLICY_RULE" },
  ]);
  const alone = decideOn([shadow("a", "allow")]);
  assert.equal(verdict(alone), "deny NO_MATCHING_RULE");
  assert.equal(alone.shadow[0]?.effect, "allow");
});

test("no rule can use the steps of another", () => {
  const costly = (list: string): string => `params.${list}.all(x, params.${list}.all(y, x + y >= 0))`;
  const numbers = (length: number): number[] => Array.from({ length }, (_, i) => i);
  const denials = (list: string) =>
    Array.from({ length: 20 }, (_, i) => rule(`r${i}`, "deny", { when: `!(${costly(list)})` }));
  const documents = [
    policy("candidate", denials("long"), { mode: "shadow" }),
    policy("real", [...denials("short"), rule("ok", "allow", { when: costly("short") })]),
  ];
  const decision = decideOn(documents, action("crm", "update", { short: numbers(220), long: numbers(2_000) }));
  assert.equal(decision.shadow[0]?.reason_code, "CONDITION_LIMIT");
  assert.equal(verdict(decision), "allow real/ok");
});

test("a long value exhausts only the rules that read it, in every order", () => {
  const documents = (first: string, second: string) => [
    policy("p", [rule("a", "deny", { when: first }), rule("b", "deny", { when: second }), rule("ok", "allow")], {
      let: { heavy: { cel: "params.l.exists(x, params.l.exists(y, x + y < 0))" } },
    }),
  ];
  const request = action("crm", "update", { l: Array.from({ length: 2_000 }, (_, i) => i), n: 1 });
  for (const [first, second, expected] of [
    ["params.n == 2 && heavy", "params.n == 3", "allow p/ok"],
    ["params.n == 2 || heavy", "params.n == 1", "deny p/a"],
    ["params.n == 2", "heavy", "deny p/b"],
    ["params.n == 1 || heavy", "heavy", "deny p/a"],
  ] as const) {
    const decision = decideOn(documents(first, second), request);
    assert.equal(verdict(decision), expected, `${first}; ${second}`);
    if (expected !== "allow p/ok" && first !== "params.n == 1 || heavy")
      assert.equal(decision.reason_code, "CONDITION_LIMIT");
  }
});

test("many rules for one tool deny nothing by their number", () => {
  const rules = Array.from({ length: 8_000 }, (_, i) =>
    rule(`r${i}`, "deny", { tool: "shell", when: `params.command.matches("^cmd${i} [a-z]+$")` }),
  );
  const documents = [policy("p", [...rules, rule("ok", "allow", { tool: "shell" })])];
  assert.equal(verdict(decideOn(documents, action("shell", "run", { command: "ls -la src" }))), "allow p/ok");
  const long = `ls ${"src/components/checkout/step.tsx ".repeat(60)}`;
  assert.equal(verdict(decideOn(documents, action("shell", "run", { command: long }))), "allow p/ok");
  assert.equal(verdict(decideOn(documents, action("shell", "run", { command: "cmd7999 x" }))), "deny p/r7999");
});

test("a failing condition makes its policy deny, with the rule's name and a message of limited length", () => {
  const failing = decideOn(
    [
      policy("a", [rule("ok", "allow")]),
      policy("p", [rule("n".repeat(100), "allow", { when: "params.secret > 1", risk: "high" })]),
    ],
    action("crm", "update", { secret: "hunter2" }),
  );
  assert.equal(failing.reason_code, "CONDITION_ERROR");
  assert.equal(
    failing.reason,
    `the condition of rule "${"n".repeat(100)}" in policy "p" could not be evaluated: ">" cannot take (string, int)`,
  );
  assert.equal(failing.risk_level, "high");
  assert.equal(failing.effect, "deny");
  const long = decideOn([policy("p", [rule("r", "allow", { when: `params.${"x".repeat(1_500)} == 1` })])]);
  assert.equal(long.reason.length, 501);
  const limit = decideOn(
    [policy("p", [rule("r", "allow", { when: "params.l.all(x, params.l.all(y, x + y >= 0))" })])],
    action("crm", "update", { l: Array.from({ length: 1_000 }, (_, i) => i) }),
  );
  assert.equal(limit.reason_code, "CONDITION_LIMIT");
  assert.equal(verdict(limit), "deny p/r");
});

test("facts about the agent are evaluated before any policy", () => {
  const all = [policy("p", [rule("ok", "allow")])];
  const table: [more: Partial<Facts>, expected: string][] = [
    [{}, "allow p/ok"],
    [{ require_registered_agents: true }, "deny AGENT_NOT_REGISTERED"],
    [{ require_registered_agents: false }, "allow p/ok"],
    [{ require_registered_agents: true, agent: { suspended: false, allowed_tools: null } }, "allow p/ok"],
    [{ agent: { suspended: true, allowed_tools: ["crm"] } }, "deny AGENT_SUSPENDED"],
    [{ agent: { suspended: false, allowed_tools: [] } }, "deny TOOL_NOT_ALLOWED"],
    [{ agent: { suspended: false, allowed_tools: ["stripe", "email"] } }, "deny TOOL_NOT_ALLOWED"],
    [{ agent: { suspended: false, allowed_tools: ["stripe", "c*"] } }, "allow p/ok"],
  ];
  for (const [more, expected] of table)
    assert.equal(
      verdict(decideOn(all, action("crm", "update"), { ...FACTS, ...more })),
      expected,
      JSON.stringify(more),
    );
  assert.equal(
    verdict(
      decide(
        emptyPolicySet(),
        action("crm", "get"),
        { ...FACTS, agent: { suspended: true, allowed_tools: null } },
        NOW,
      ),
    ),
    "deny AGENT_SUSPENDED",
  );
});

test("a rule's reason is returned as written, or else the rule is named", () => {
  assert.equal(decideOn([policy("p", [rule("r", "deny", { reason: "not on Fridays" })])]).reason, "not on Fridays");
  assert.equal(decideOn([policy("p", [rule("r", "allow")])]).reason, 'allowed by rule "r" of policy "p"');
  assert.equal(decideOn([policy("p", [rule("r", "deny")])]).reason, 'denied by rule "r" of policy "p"');
  assert.equal(
    decideOn([policy("p", [rule("r", "require_approval")])]).reason,
    'sent for approval by rule "r" of policy "p"',
  );
  const long = decideOn([policy("p", [rule("r", "deny", { tool: "x" })])], action("😀".repeat(100), "o"));
  assert.doesNotThrow(
    () => canonicalText(long as unknown as JsonValue),
    "a cut name must not leave half of a surrogate pair",
  );
});

test("deciding is pure: frozen inputs, no clock, no randomness, the same bytes", () => {
  const compiled = compile(
    policy("a", [
      rule("ask", "require_approval", {
        when: 'params.items.exists(i, i.price > 10) && now.getHours("+01:00") == 11 && now > timestamp("2026-01-01T00:00:00Z")',
        approval: { notify: ["b", "a"] },
      }),
    ]),
    policy("b", [rule("zone", "allow", { when: 'now.getDayOfWeek("Europe/Berlin") == 4' })]),
    policy("c", [rule("fails", "deny", { when: "params.nope" })], { mode: "shadow" }),
  );
  const request = freeze(action("crm", "update", { items: [{ price: 5 }, { price: 10.5 }] }));
  const facts = freeze({ ...FACTS, agent: { suspended: false, allowed_tools: ["*"] } });
  const RealDate = globalThis.Date;
  const { random } = Math;
  const first = canonicalText(decide(compiled, request, facts, NOW) as unknown as JsonValue);
  assert.equal(JSON.parse(first).rule, "ask");
  try {
    globalThis.Date = new Proxy(RealDate, {
      construct(target, args: number[]) {
        if (args.length === 0) throw new Error("read the clock");
        return Reflect.construct(target, args as [number]) as Date;
      },
      get(target, key) {
        if (key === "now") throw new Error("read the clock");
        return Reflect.get(target, key) as unknown;
      },
    });
    Math.random = () => assert.fail("took a random number");
    for (let i = 0; i < 20; i++)
      assert.equal(canonicalText(decide(compiled, request, facts, NOW) as unknown as JsonValue), first);
  } finally {
    globalThis.Date = RealDate;
    Math.random = random;
  }
  // CompiledPolicySet again from its document's canonical JSON, as a replay does it.
  const again = compile(
    ...(JSON.parse(canonicalText(compiled.document as unknown as JsonValue)) as typeof compiled.document).policies.map(
      ({ definition }) => definition,
    ),
  );
  assert.equal(canonicalText(decide(again, request, facts, NOW) as unknown as JsonValue), first);
  assert.notEqual(canonicalText(decide(compiled, request, facts, NOW + 3_600_000) as unknown as JsonValue), first);
});

function permutations<T>(items: T[]): T[][] {
  if (items.length < 2) return [items];
  return items.flatMap((item, i) =>
    permutations([...items.slice(0, i), ...items.slice(i + 1)]).map((rest) => [item, ...rest]),
  );
}

function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
}
