/** Conditions that can never be evaluated, and rules that can have no effect, are found without a request. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parsePolicies } from "../../src/domain/policy/parse/parse.ts";

const TOOLS = `tools:
  - tool: stripe
    operation: refund
    params:
      type: object
      properties:
        amount: { type: number }
        count: { type: [integer, "null"] }
        currency: { enum: [USD, EUR] }
        items: { type: array, items: { type: object, properties: { price: { type: integer } } } }
        note: { $ref: "#/$defs/text" }
        free: { type: object, properties: { known: { type: string } }, additionalProperties: true }
      $defs: { text: { type: [string, "null"] } }
`;

function check(condition: string, head = ""): string[] {
  const text = `policy: p
${head}rules:
  - name: a
    tool: stripe
    operation: refund
    when: ${JSON.stringify(condition)}
    effect: allow
`;
  const { faults, warnings } = parsePolicies(text, "p.yaml");
  return [...faults, ...warnings].map(({ line, column, message }) => `${line}:${column} ${message}`);
}

describe("the static check of conditions", () => {
  const WRONG: [condition: string, message: RegExp][] = [
    ["tool > 5", /^6:15 .*">" cannot compare a string and an int/],
    ["principal.ownr == 'x'", /principal has no field "ownr"; did you mean "owner"\?/],
    ["now - timestamp(params.t) < duration('30d')", /^6:40 .*duration\("30d"\) always fails; write hours/],
    ["duration('30d') > duration('1h')", /^6:12 .*: duration\("30d"\) always fails; write hours/],
    ["agent == 5", /agent \(a string\) and 5 \(an int\) are never equal/],
    ["tool != 5", /always differ/],
    ["tool in [1, 2]", /tool \(a string\) and 1 \(an int\) are never equal/],
    ["'a' in tool", /"in" needs a list or a map; tool is a string/],
    ["now.getHours('Europe/Berln') > 3", /no time zone "Europe\/Berln"; did you mean "Europe\/Berlin"\?/],
    ["now.getHours('+25:00') > 3", /no time zone "\+25:00"; write an IANA name/],
    ["size(5) > 1", /"size" does not accept an int/],
    ["tool.name == 'x'", /tool is a string, which has no fields such as "name"/],
    ["tool[0] == 'a'", /tool is a string, which has no elements/],
    ["params.a == 1 / 0", /1 \/ 0 always fails/],
    ["agent", /the expression is a string; it must be true or false/],
    ["agent && true", /"&&" needs true or false on both sides; agent is a string/],
    ["(tool ? 1 : 2) == 1", /"\?" needs true or false in front of it; tool is a string/],
    ["tool.exists(c, c == 'a')", /need a list or a map; tool is a string/],
    ["params.l.map(x, x * 2)[0] == 'a'", /\(an int\) and "a" \(a string\) are never equal/],
    ["params.a > 5 and params.b > 5", /write "&&" instead of "and"/],
    ["params.a > 5 or params.b > 5", /write "\|\|" instead of "or"/],
    ["params.a = 5", /write "==" instead of "="/],
    ["not params.a", /write "!" instead of "not"/],
  ];
  for (const [condition, message] of WRONG)
    it(`refuses ${condition} with one message`, () => {
      const faults = check(condition);
      assert.equal(faults.length, 1, faults.join("\n"));
      assert.match(faults[0] as string, message);
    });

  const RIGHT = [
    "params.anything.at[0].all == 'x' && params.x > 5 && params.x == 'y'",
    "principal.owner in ['ops'] || principal.owner == null",
    "type(params.amount) in [int, double] && double(params.amount) * 1.19 <= 1000.0",
    "has(params.to) && type(params.to) == string && params.to.matches('^[a-z]+$')",
    "params.items.all(item, item.price < 100.0) && size(params.items) <= 20",
    "params.l.filter(x, x > 1).size() == 1 && params.l.map(x, x * 2)[0] == 4",
    "now - timestamp(params.at) < duration('720h') && now.getDayOfWeek('+02:00') in [1, 2]",
    "type(now) == google.protobuf.Timestamp && {'a': 1}['a'] == 1",
    "(params.x ? 1 : 'a') == 'a' && params.y in []",
    "5 == 5.0 && 5u == 5",
  ];
  for (const condition of RIGHT)
    it(`accepts ${condition}`, () => {
      assert.deepEqual(check(condition), []);
    });
});

describe("a tool with a schema", () => {
  const WRONG: [condition: string, message: RegExp][] = [
    ["params.amuont > 5", /params has no field "amuont"; did you mean "amount"\?/],
    ["params['amuont'] > 5", /did you mean "amount"\?/],
    ["has(params.amuont)", /did you mean "amount"\?/],
    ["params.amount > '5'", /">" cannot compare an int or a double and a string/],
    ["params.currency == 'eur'", /which is one of "USD", "EUR", and "eur" are never equal/],
    ["params.currency in ['USD', 'eur']", /"eur" are never equal/],
    ["params.items.exists(i, i.prize > 5)", /i has no field "prize"; did you mean "price"\?/],
    ["params.amount * 1.25 > 5", /"\*" does not accept an int and a double; a value of "type: number" can be an int/],
    [
      "params.amount / 3 > 5",
      /"\/" does not accept a double and an int; .* convert it with double\(\), and write constants/,
    ],
    ["params.amount + params.amount > 5", /"\+" does not accept an int and a double/],
    ["params.amount % 2 == 0", /"%" does not accept a double and an int/],
    ["math.ceil(params.amount) > 5.0", /"math\.ceil" does not accept an int; .*: convert it with double\(\)$/],
    ["lists.range(params.amount) == []", /"lists\.range" does not accept a double; .*declare "type: integer"/],
    ["params.note == 5", /params\.note \(a string or null\) and 5 \(an int\) are never equal/],
  ];
  for (const [condition, message] of WRONG)
    it(`refuses ${condition}`, () => {
      const faults = check(condition, TOOLS);
      assert.equal(faults.length, 1, faults.join("\n"));
      assert.match(faults[0] as string, message);
    });

  it("accepts what the schema allows", () => {
    for (const condition of [
      "params.amount <= 1000 && params.currency == 'USD'",
      "double(params.amount) * 1.25 > 5 && params.items.exists(i, i.price * 2 > 5)",
      "-params.amount < 5 && math.abs(params.amount) > 5.5 && string(params.amount) != '' && params.count * 2 > 5",
      "[params.amount, 2].sum() > 5.5 && math.greatest(params.amount, 2.5) > 2",
      "params.note == null || params.note.startsWith('x')",
      "params.free.unknown == 5 && params.free.known == 'x'",
    ])
      assert.deepEqual(check(condition, TOOLS), []);
  });

  it("does not restrict a rule for other tools, or for tools by glob", () => {
    for (const tool of ["tool: git", 'tool: "str*"', "tool: [stripe, git]", "operation: refund"]) {
      const text = `policy: p\n${TOOLS}rules:\n  - name: a\n    ${tool}\n    when: params.amuont > 5\n    effect: allow\n`;
      assert.deepEqual(parsePolicies(text, "p.yaml").faults, [], tool);
    }
  });

  it("checks limits, too", () => {
    const limit = (member: string) =>
      parsePolicies(
        `policy: p\n${TOOLS}rules: []\nlimits:\n  - { name: l, tool: stripe, operation: refund, window: day, ${member} }\n`,
        "p.yaml",
      ).faults.map(({ message }) => message);
    assert.match(limit("sum: params.currency, at_most: 5").join(), /the expression is a string; it must be a number/);
    assert.match(limit("per: params.items, count: 5").join(), /a list; it must be a string, a number or a bool/);
    assert.deepEqual(limit("per: params.currency, sum: params.amount, at_most: 5"), []);
  });
});

describe("a rule without effect", () => {
  const warn = (rules: string, head = ""): string[] => {
    const { faults, warnings } = parsePolicies(`policy: p\n${head}rules:\n${rules}`, "p.yaml");
    assert.deepEqual(faults, []);
    return warnings.map(({ line, message }) => `${line} ${message}`);
  };

  it("is reported if an earlier rule matches all its actions", () => {
    const later = "  - { name: b, tool: stripe, operation: refund, when: params.a > 5, effect: deny }\n";
    const unreachable = [/the rule "b" never decides, because "a" matches the same actions first/];
    for (const [earlier, expected] of [
      ["tool: stripe", unreachable],
      ["tool: STRIPE", unreachable],
      ['tool: "str*"', unreachable],
      ["when: params.a > 5", unreachable],
      ["tool: stripe, when: params.a > 6", []],
      ["tool: git", []],
      ["tool: stripe, agent: x", []],
    ] as const) {
      const warnings = warn(`  - { name: a, ${earlier}, effect: allow }\n${later}`);
      assert.equal(warnings.length, expected.length, `${earlier}: ${warnings.join()}`);
      for (const [i, message] of expected.entries()) assert.match(warnings[i] as string, message);
    }
  });

  it("is reported if applies_to excludes its tool or agent", () => {
    const head = "applies_to: { tools: [stripe, 'git.*'], agents: ['support-*'] }\n";
    assert.match(
      warn("  - { name: a, tool: github, effect: deny }\n", head).join(),
      /"a" names the tool "github", which applies_to\.tools of the policy "p" excludes/,
    );
    assert.match(warn("  - { name: a, agent: ops, effect: deny }\n", head).join(), /the agent "ops"/);
    assert.deepEqual(warn("  - { name: a, tool: [Stripe, git.push], agent: support-1, effect: deny }\n", head), []);
  });

  it("is reported if its condition contradicts itself", () => {
    const contradictions = [
      "params.a > 100 && params.a < 50",
      "params.a > 5 && params.b && 5 >= params.a",
      "params.a == 'x' && params.a == 'y'",
      "params.a == 5 && params.a > 5",
      "params.a != 'x' && 'x' == params.a",
      "params.a in ['x', 'y'] && params.a == 'z'",
      "params.a in [1, 2] && params.a in [3]",
      "params.a && !params.a",
      "params.a && (tool == 'x' || params.b) && !(tool == 'x' || params.b)",
    ];
    for (const when of contradictions) {
      const [warning = ""] = warn(`  - { name: a, when: ${JSON.stringify(when)}, effect: allow }\n`);
      assert.match(warning, /the condition of "a" is never true: ".*" excludes ".*"/, when);
    }
    for (const when of [
      "params.a > 50 && params.a < 100",
      "params.a >= 5 && params.a <= 5",
      "params.a > 100 || params.a < 50",
      "params.a == 'x' && params.b == 'y'",
      "params.a > 9007199254740993 && params.a < 9007199254740993",
      "params.a != 'x' && params.a == 'y'",
      "params.a in ['x', 'y'] && params.a in ['y', params.b] && params.a == 'y'",
      "params.a in ['x'] && params.a != 'y' && !params.b",
      "params.a != 5 && params.a > 5",
    ])
      assert.deepEqual(warn(`  - { name: a, when: ${JSON.stringify(when)}, effect: allow }\n`), [], when);
  });

  it("is reported if its condition reads no variable and is false", () => {
    const warnings = ["1 == 2", "params.a && 5 > 6", "false", "2 > 1", "true"].map((when) =>
      warn(`  - { name: a, when: ${JSON.stringify(when)}, effect: allow }\n`).join(),
    );
    assert.match(warnings[0] ?? "", /the condition of "a" is never true: "1 == 2" is false/);
    assert.match(warnings[1] ?? "", /is never true: "5 > 6" is false/);
    assert.match(warnings[2] ?? "", /is never true: "false" is false/);
    assert.deepEqual(warnings.slice(3), ["", ""]);
  });
});

describe("effects of other policy languages", () => {
  for (const [effect, meant] of [
    ["permit", "allow"],
    ["ask", "require_approval"],
    ["block", "deny"],
    ["require-approval", "require_approval"],
  ])
    it(`suggests ${meant} for ${effect}`, () => {
      const { faults } = parsePolicies(`policy: p\nrules:\n  - { name: a, effect: ${effect} }\n`, "p.yaml");
      assert.equal(faults.length, 1);
      assert.match((faults[0] as { message: string }).message, new RegExp(`did you mean "${meant}"\\?$`));
    });
});
