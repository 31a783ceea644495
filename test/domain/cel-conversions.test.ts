/** Conversions: a text that is not completely a number, a time or a duration is an error, and so a deny. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { printCelValue } from "../../src/domain/policy/condition/cel-print.ts";
import { Activation, compileExpression } from "../../src/domain/policy/condition/condition.ts";
import { decide } from "../../src/domain/policy/decide/decide.ts";
import type { JsonValue } from "../../src/domain/json.ts";
import { action, compile, FACTS, NOW, policy, rule } from "../support/policy.ts";

function value(source: string, given: JsonValue = null): string {
  const compiled = compileExpression(source, "expression");
  assert.ok(compiled.ok, compiled.ok ? "" : `${source}: ${compiled.message}`);
  const request = { agent_id: "a", tool: "t", operation: "o", params: { v: given }, context: {} };
  const result = compiled.expression.evaluate(new Activation(request, FACTS, NOW));
  return "error" in result ? "error" : printCelValue(result.value);
}

/** For each function, the texts that it accepts and those that it rejects. */
const TABLE: [name: string, takes: Record<string, string>, refuses: string[]][] = [
  [
    "int",
    { "5": "5", "-5": "-5", "+5": "5", "007": "7", "-9223372036854775808": "-9223372036854775808" },
    ["", " ", "5 ", " 5", "5.0", "5e3", "0x10", "0b1", "0o7", "1_000", "5,000", "--5", "+", "٥", "9223372036854775808"],
  ],
  ["uint", { "5": "5u", "0": "0u" }, ["", "+5", "-5", "-0", " 5", "0x5", "5u", "18446744073709551616"]],
  [
    "double",
    {
      "5": "5.0",
      "-5.5": "-5.5",
      "+.5": "0.5",
      "5.": "5.0",
      "5e3": "5000.0",
      inf: "Infinity",
      "-Infinity": "-Infinity",
      NaN: "NaN",
    },
    [
      "",
      " ",
      ".",
      "5,000",
      "5 000",
      " 5",
      "5 ",
      "0x10",
      "1_0",
      "5e",
      "$5",
      "-nan",
      "1e999",
      "1e-400",
      "-1e-400",
      "9007199254740993",
      "9007199254740993.0",
      "Infinit",
      "５",
    ],
  ],
  ["bool", { true: "true", False: "false", "1": "true", t: "true" }, ["", "yes", "tRUE", " true", "2"]],
  [
    "duration",
    { "0": "0s", "-0": "0s", "1.5h": "5400s", "1h2m3s": "3723s", "-1m": "-60s", ".5s": "0.5s", "1µs": "0.000001s" },
    ["", "+", "-", "1", "1d", "1h ", " 1h", "h", ".s", "1h-2m", "1e3s", "320000000000s"],
  ],
  [
    "timestamp",
    {
      "2026-01-15T10:00:00Z": "2026-01-15T10:00:00.000Z",
      "2026-01-15T10:00:00.5+02:00": "2026-01-15T08:00:00.500Z",
      "0001-01-01T00:00:00Z": "0001-01-01T00:00:00.000Z",
    },
    [
      "",
      "2026-01-15",
      "2026-02-30T00:00:00Z",
      "2026-13-01T00:00:00Z",
      "2026-01-15T24:00:00Z",
      "2026-01-15T10:00:60Z",
      "2026-01-15T10:00:00",
      "2026-01-15 10:00:00Z",
      "2026-01-15T10:00:00Z ",
      "0001-01-01T00:00:00+01:00",
      "1768471200",
    ],
  ],
];

test("a string must be completely a number, a time or a duration", () => {
  for (const [name, takes, refuses] of TABLE) {
    for (const [text, made] of Object.entries(takes))
      assert.equal(value(`${name}(params.v)`, text), made, `${name}("${text}")`);
    for (const text of refuses) assert.equal(value(`${name}(params.v)`, text), "error", `${name}("${text}")`);
  }
});

test("numbers become times in seconds, and only types that CEL converts are converted", () => {
  assert.equal(value("timestamp(1768471200)"), "2026-01-15T10:00:00.000Z");
  assert.equal(value("timestamp(int(timestamp('2026-01-15T10:00:00Z')))"), "2026-01-15T10:00:00.000Z");
  for (const source of [
    "timestamp(253402300800)",
    "timestamp(-62135596801)",
    "duration(5)",
    'int(duration("5s"))',
    "int(true)",
    "double(true)",
    "int(9.3e18)",
    "uint(-1)",
    "uint(-0.5)",
    "string([1])",
    "int(null)",
  ])
    assert.equal(value(source), "error", source);
  assert.equal(value("string(b'\\xef\\xbb\\xbfa').size()"), "2");
  assert.equal(value("string(b'\\xff')"), "error");
});

test("strings are sorted by code points", () => {
  assert.equal(value("'\\uffff' < '\\U0001f98a'"), "true");
  assert.equal(value("'\\U0001f98a' <= '\\uffff'"), "false");
  assert.equal(value("'a\\U0001f98a' > 'a\\U0001f989'"), "true");
  assert.equal(value("'a' < 'ab' && 'b' > 'ab' && 'a' >= 'a'"), "true");
});

test("a key with the value null exists, even in a map that the condition creates", () => {
  for (const source of [
    '"a" in {"a": null}',
    "1 in {1: null}",
    "1u in {1: null}",
    "true in {true: null}",
    "1.0 in {1: 2}",
  ])
    assert.equal(value(source), "true", source);
  assert.equal(value("2 in {1: null}"), "false");
});

test("a literal that its double changes does not compile", () => {
  for (const literal of [
    "1e-400",
    "1e400",
    ".1e-399",
    "9007199254740993.0",
    "9.007199254740993e15",
    `0.${"0".repeat(400)}1`,
  ])
    for (const [source, offset] of [
      [`params.v > ${literal}`, 11],
      [`params.v>-${literal} && true`, 10],
      [`"1e-400 // " == '1e-400' || [1.5, ${literal}] == []`, 34],
    ] as const) {
      const compiled = compileExpression(source);
      assert.ok(!compiled.ok, source);
      assert.match(compiled.message, /^the number .* cannot be represented exactly/);
      assert.equal(compiled.offset, offset, source);
    }
  for (const source of [
    "params.v > 0.1",
    "1e22 > 0.0",
    "0e-400 == 0.0",
    "'1e-400' == r'1e400'",
    "true // 1e400\n",
    "x1e400 == 1",
  ])
    assert.match(JSON.stringify(compileExpression(source, "expression")), /"ok":true|x1e400/, source);
});

test("a string that is not a number does not pass a rule about large amounts", () => {
  const rules = [rule("large", "require_approval", { when: "double(params.amount) > 1000.0" }), rule("rest", "allow")];
  const set = compile(policy("p", rules));
  for (const amount of ["5,000", "", " 5000", "0x1388", "5 000"])
    assert.equal(
      decide(set, action("stripe", "refund", { amount }), FACTS, NOW).reason_code,
      "CONDITION_ERROR",
      amount,
    );
  assert.equal(decide(set, action("stripe", "refund", { amount: "5000" }), FACTS, NOW).effect, "require_approval");
  assert.equal(decide(set, action("stripe", "refund", { amount: "500" }), FACTS, NOW).effect, "allow");
});
