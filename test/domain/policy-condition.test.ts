import assert from "node:assert/strict";
import test from "node:test";
import { compilePattern } from "../../src/domain/policy/condition/cel-patterns.ts";
import {
  Activation,
  compileCondition,
  MAX_COMPREHENSIONS,
  MAX_EXPRESSION_DEPTH,
  MAX_EXPRESSION_LENGTH,
  MAX_COMPREHENSION_NESTING,
  type ConditionResult,
} from "../../src/domain/policy/condition/condition.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { parseRfc3339 } from "../../src/domain/time.ts";

const NOW = "2026-03-29T01:30:00.250Z";
const FACTS = { principal: { key_id: "k1", name: "support", agent_id: null, owner: "ada" } };

function activation(params: JsonObject, now = NOW): Activation {
  return new Activation(
    { agent_id: "support-1", tool: "stripe", operation: "refund", params, context: { ticket: "T-1" } },
    FACTS,
    parseRfc3339(now) as number,
  );
}

function evaluate(source: string, params: JsonObject = {}, now = NOW): ConditionResult {
  const compiled = compileCondition(source);
  if (!compiled.ok) assert.fail(`${source}: ${compiled.message}`);
  return compiled.condition.evaluate(activation(params, now));
}

function holds(table: [source: string, params: JsonObject, expected: boolean][]): void {
  for (const [source, params, value] of table)
    assert.deepEqual(evaluate(source, params), { value }, `${source} with ${JSON.stringify(params)}`);
}

test("numbers compare across int and double", () => {
  holds([
    ["params.amount <= 1000", { amount: 999.5 }, true],
    ["params.amount <= 1000", { amount: 1000 }, true],
    ["params.amount <= 1000", { amount: 1000.5 }, false],
    ["params.amount == 1000", { amount: 1000 }, true],
    ["params.amount == 1000.0", { amount: 1000 }, true],
    ["params.amount == 1000", { amount: 999.5 }, false],
    ["params.amount > 1000.25", { amount: 1001 }, true],
    ["params.amount in [1, 2, 3]", { amount: 2 }, true],
    ["params.amount == 9007199254740991", { amount: Number.MAX_SAFE_INTEGER }, true],
    ["type(params.amount) == int", { amount: 5 }, true],
    ["type(params.amount) == double", { amount: 5.5 }, true],
    ["type(params.amount) == double", { amount: 1e300 }, true],
  ]);
});

test("arithmetic does not mix int and double", () => {
  holds([
    ["params.amount * 2 > 100", { amount: 51 }, true],
    ["params.amount * 2.0 > 100.0", { amount: 50.5 }, true],
    ["double(params.amount) * 2.0 > 100.0", { amount: 51 }, true],
    ["double(params.amount) * 2.0 > 100.0", { amount: 50.5 }, true],
  ]);
  assert.deepEqual(evaluate("params.amount * 2 > 100", { amount: 50.5 }), {
    error: "CONDITION_ERROR",
    message: '"*" cannot take (double, int)',
  });
});

test("every variable is defined", () => {
  holds([
    ['agent == "support-1" && tool == "stripe" && operation == "refund"', {}, true],
    ['context.ticket == "T-1"', {}, true],
    [
      'principal.key_id == "k1" && principal.name == "support" && principal.owner == "ada" && principal.agent_id == null',
      {},
      true,
    ],
    [`now == timestamp("${NOW}")`, {}, true],
    ['now - timestamp("2026-03-28T01:30:00Z") > duration("24h")', {}, true],
  ]);
});

test("keys are data: none reaches a prototype, and null is a value", () => {
  const hostile = JSON.parse('{"__proto__": {"admin": true}, "k": null, "a": {"constructor": 1}}') as JsonObject;
  holds([
    ["has(params.admin)", hostile, false],
    ['params["__proto__"].admin', hostile, true],
    ["has(params.__proto__)", {}, false],
    ["has(params.constructor) || has(params.toString) || has(params.length)", {}, false],
    ['"hasOwnProperty" in params', {}, false],
    ["has(params.a.constructor) && params.a.constructor == 1", hostile, true],
    ["has(params.k)", hostile, true],
    // The CEL specification has an error here, as docs/policies.md says.
    ["has(params.k.x)", hostile, false],
    ['"k" in params && params.k == null', hostile, true],
    ['"k" in {"k": null}', {}, true],
    ["size(params) == 3", hostile, true],
    ['params.exists(key, key == "k")', hostile, true],
    ['params == {"b": [1, {"c": 2.5}], "a": "x"}', { a: "x", b: [1, { c: 2.5 }] }, true],
    ['params == {"a": "x"}', { a: "x", b: 1 }, false],
    ["params.l[0] == 1 && params.l[1] == [2]", { l: [1, [2]] }, true],
    ["params.l + [3] == [1, 2, 3]", { l: [1, 2] }, true],
    ["size(params.s) == 3", { s: "aé😀" }, true],
    ["type(params) == map && type(params.l) == list", { l: [] }, true],
  ]);
});

test("members are visited in the order of canonical JSON, however the client ordered them, as in a replay", () => {
  for (const params of [
    { b: 1, a: 2, "10": 3, "9": 4 },
    { "9": 4, a: 2, b: 1, "10": 3 },
  ])
    holds([['params.map(name, name) == ["10", "9", "a", "b"]', params, true]]);
  // Also the steps are equal: in the order of the client, the first member would decide at once.
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`b${i}`, i]));
  const found = [
    { z: 0, ...many },
    { ...many, z: 0 },
  ].map((params) => evaluate('params.exists(name, name == "z")', params));
  assert.deepEqual(found[0], found[1]);
});

test("calendar fields do not depend on the time zone of the process", () => {
  const before = process.env["TZ"];
  try {
    // On this day 01:30 does not exist on clocks in Lisbon, nor 02:30 in Berlin.
    for (const zone of ["UTC", "Europe/Lisbon", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati"]) {
      process.env["TZ"] = zone;
      holds([
        [
          "now.getHours() == 1 && now.getMinutes() == 30 && now.getSeconds() == 0 && now.getMilliseconds() == 250",
          {},
          true,
        ],
        [
          "now.getFullYear() == 2026 && now.getMonth() == 2 && now.getDate() == 29 && now.getDayOfMonth() == 28",
          {},
          true,
        ],
        ["now.getDayOfWeek() == 0 && now.getDayOfYear() == 87", {}, true],
        [
          'now.getHours("+05:30") == 7 && now.getMinutes("+05:30") == 0 && now.getHours("-02:00") == 23 && now.getDate("-02:00") == 28',
          {},
          true,
        ],
        [
          'now.getHours("Europe/Berlin") == 3 && now.getHours("Europe/Lisbon") == 2 && now.getHours("UTC") == 1',
          {},
          true,
        ],
        ['now.getHours("America/New_York") == 21 && now.getDayOfWeek("America/New_York") == 6', {}, true],
      ]);
    }
  } finally {
    if (before === undefined) delete process.env["TZ"];
    else process.env["TZ"] = before;
  }
});

test("a failure is an error with a message that repeats no value of the request", () => {
  const secret = "hunter2";
  const params: JsonObject = { s: secret, l: [1], i: 4711, m: { [secret]: 1 }, zero: 0 };
  const table: [source: string, message: RegExp][] = [
    ["params.nope == 1", /^there is no field "nope"; test for it with has\(\)$/],
    ["params.s.nope == 1", /^there is no field "nope"/],
    ["params[params.s] == 1", /^no field has this name$/],
    ["params.l[params.i] == 1", /^an index is outside its list$/],
    ["params.s < 1", /^"<" cannot take \(string, int\)$/],
    ["int(params.s) > 1", /^"int" cannot take these values$/],
    ["bool(params.s)", /^"bool" cannot take these values$/],
    ["timestamp(params.s) < now", /^"timestamp" cannot take these values$/],
    ['duration(params.s) < duration("1h")', /^"duration" cannot take these values$/],
    ["now.getHours(params.s) == 1", /^"getHours" cannot take these values$/],
    ["1 / params.zero == 1", /^"\/" cannot take these values$/],
    ["params.i * 9223372036854775807 > 0", /^"\*" cannot take these values$/],
    ["params.s", /^its result is not true or false$/],
    ["params.s && true", /^&& and \|\| need true or false on both sides$/],
    ["params.i.exists(x, x == 1)", /^exists, all, map and filter need a list or a map$/],
    ["{params.s: 1, params.s: 2} == {}", /^it cannot be evaluated for these values$/],
    ["{params.m: 1} == {}", /^it cannot be evaluated for these values$/],
  ];
  for (const [source, message] of table) {
    const result = evaluate(source, params);
    assert.ok("error" in result, `${source} gave ${JSON.stringify(result)}`);
    assert.equal(result.error, "CONDITION_ERROR", source);
    assert.match(result.message, message, source);
    assert.ok(!/hunter2|4711/.test(result.message), `${source} repeats a value: ${result.message}`);
  }
});

test("errors next to || and && are ignored if the other side decides", () => {
  holds([
    ["params.nope || true", {}, true],
    ["false && params.nope", {}, false],
    ["params.nope && false", {}, false],
  ]);
  assert.ok("error" in evaluate("params.nope || false"));
});

test("brackets in strings do not nest", () => {
  const many = "([{".repeat(100);
  for (const source of [
    `params.s == "${many}"`,
    `params.s == '''${many}'''`,
    `params.s == r'${many}\\'`,
    `params.s == "\\"${many}"`,
  ]) {
    const compiled = compileCondition(source);
    assert.ok(compiled.ok, compiled.ok ? "" : `${compiled.message}: ${source.slice(0, 40)}`);
  }
});

test("each limit on the form of a condition reports its own fault, at its location", () => {
  const nest = (levels: number): string => (levels === 0 ? "true" : `params.l.all(x${levels}, ${nest(levels - 1)})`);
  const table: [source: string, message: RegExp, offset: number][] = [
    ["", /^the condition is empty/, 0],
    ["  \n ", /^the condition is empty/, 0],
    ["a".repeat(MAX_EXPRESSION_LENGTH + 1), /^the condition has 2049 characters, at most 2048 are allowed$/, 0],
    [`true${" + 1".repeat(MAX_EXPRESSION_DEPTH)} == 1`, /^the condition nests deeper than 64 levels$/, 4],
    [`${"(".repeat(900)}true${")".repeat(900)}`, /^the condition's brackets nest deeper than 64 levels$/, 64],
    [`${"[".repeat(65)}${"]".repeat(65)} == []`, /^the condition's brackets nest deeper than 64 levels$/, 64],
    [
      `'it\\'s' == "(" && ${"(".repeat(65)}true${")".repeat(65)}`,
      /^the condition's brackets nest deeper than 64 levels$/,
      82,
    ],
    [
      `params.s == r"\\" && ${"(".repeat(65)}true${")".repeat(65)} && params.s == ""`,
      /^the condition's brackets nest deeper than 64 levels$/,
      84,
    ],
    [nest(MAX_COMPREHENSION_NESTING + 1), /nests comprehensions \(exists, all, map, filter\) deeper than 3$/, 59],
    [
      Array.from({ length: MAX_COMPREHENSIONS + 1 }, () => "[1].all(x, x > 0)").join(" && "),
      /^the condition has more than 8 comprehensions/,
      171,
    ],
    ["params.amount <=", /^the condition cannot be read at "<="$/, 14],
    ["params.amount &&& true", /^the condition cannot be read at "&&& true"$/, 14],
    ['"unterminated', /^the condition cannot be read at/, 0],
    ["parms.amount == 1", /^there is no variable "parms"; did you mean "params"\?$/, 0],
    [
      "true || user == 1",
      /^there is no variable "user"; the variables are agent, agent_groups, agent_metadata, tool, operation, params, context, principal, session, now$/,
      8,
    ],
    ["@result == 1", /^the condition cannot be read at "@result == 1"$/, 0],
    ['params.s.startswith("a")', /^there is no method "startswith"; did you mean "startsWith"\?$/, 8],
    ["Date(1) == 2", /^there is no function "Date"/, 0],
    ["startsWith(params.s)", /^there is no function "startsWith"; it is a method$/, 0],
    ['params.s.startsWith("a", "b")', /^"startsWith" takes 1 argument, not 2$/, 8],
    ["has(params)", /^"has" is not used like this; write for example has\(params\.amount\)$/, 0],
    ["params.l.exists(x)", /^"exists" is not used like this/, 8],
    ["params.s.matches(params.p)", /^the pattern of "matches" must be a text in the condition itself/, 23],
    ['params.s.matches("(")', /^the pattern is not an RE2 regular expression: missing closing \)/, 17],
    ['params.s.matches("(a)\\\\1")', /^the pattern is not an RE2 regular expression: invalid escape sequence/, 17],
    ['params.s.matches("a{400}b{400}")', /^the pattern compiles to \d+ instructions, at most 500 are allowed/, 17],
    ["{0: 1, 0u: 2}[0] == 1", /^the map has the key 0 twice$/, 0],
    ["google.protobuf.Struct{fields: {}} == {}", /^"google\.protobuf\.Struct" cannot be built here; use a map/, 0],
    ["1 + 1", /^the condition is a sum; it must be true or false$/, 1],
    ['"true"', /^the condition is a constant; it must be true or false$/, 0],
    ["[true]", /^the condition is a list; it must be true or false$/, 0],
    ["size(params.l)", /^the condition is a number; it must be true or false$/, 0],
  ];
  for (const [source, message, offset] of table) {
    const compiled = compileCondition(source);
    if (compiled.ok) assert.fail(`${source.slice(0, 60)} compiled`);
    assert.match(compiled.message, message);
    assert.equal(compiled.offset, offset, `${source.slice(0, 60)}: ${compiled.message}`);
  }
  assert.ok(compileCondition(`1${" + 1".repeat(MAX_EXPRESSION_DEPTH - 3)} == 62`).ok);
  assert.ok(compileCondition(nest(MAX_COMPREHENSION_NESTING)).ok);
  assert.ok(compileCondition("params.amount == 1".padEnd(MAX_EXPRESSION_LENGTH)).ok);
});

const list = (length: number, item: (i: number) => JsonObject[string] = (i) => i): JsonObject[string][] =>
  Array.from({ length }, (_, i) => item(i));
const LIMIT = { error: "CONDITION_LIMIT", message: "it needs more than 1000000 steps for this request" };

test("the cost of a request is counted before the work is done", () => {
  const numbers = list(1_000);
  // Without the meter, each of these took between half a second and half a minute, or ran out of memory.
  const table: [source: string, params: JsonObject][] = [
    ["params.l.exists(x, params.l.exists(y, x + y < 0))", { l: numbers }],
    ["params.l.exists(x, params.l != params.o && false)", { l: numbers, o: list(1_000, (i) => (i === 999 ? -1 : i)) }],
    [
      "params.l.exists(x, params.m != params.o && false)",
      {
        l: numbers,
        m: Object.fromEntries(list(1_000).map((_, i) => [`k${i}`, i])),
        o: Object.fromEntries(list(1_000).map((_, i) => [`k${i}`, i === 999 ? -1 : i])),
      },
    ],
    ["params.a.contains(params.b)", { a: "a".repeat(500_000), b: `${"a".repeat(100_000)}b${"a".repeat(100_000)}` }],
    [`size(params.a) > 0${" && size(params.a) > 0".repeat(50)}`, { a: "a".repeat(2_000_000) }],
    [`params.l.all(x, (params.a${" + params.a".repeat(20)}).endsWith("a"))`, { l: numbers, a: "a".repeat(100_000) }],
    ["params.l.map(x, params.l).map(x, x + x + x + x) == []", { l: list(2_000) }],
    ["params.l.map(x, x).size() == 0", { l: list(300_000) }],
    [
      "params.l.all(x, params.l.all(y, size(params.m) > 0))",
      { l: list(100), m: Object.fromEntries(list(10_000).map((_, i) => [`k${i}`, 0])) },
    ],
    ["params.l.filter(x, !(x in params.o)).size() == 0", { l: numbers, o: list(1_000, (i) => -i) }],
    ['params.a.matches("[ab]*a[ab]{400}c$")', { a: `c${"abbab".repeat(10_000)}!` }],
    ['params.l.exists(x, params.a.matches("(a|b)*c$"))', { l: numbers, a: "ab".repeat(500) }],
    ["params.l.exists(x, now.getHours(params.z) > 24)", { l: list(3_000), z: "Europe/Berlin" }],
  ];
  for (const [source, params] of table) assert.deepEqual(evaluate(source, params), LIMIT, source);
});

test("|| does not hide an exceeded limit", () => {
  assert.deepEqual(evaluate("params.l.exists(x, params.l.exists(y, x + y < 0)) || true", { l: list(1_000) }), LIMIT);
});

test("ordinary sizes stay far below the limit", () => {
  holds([
    [
      "params.l.all(x, x.price < 100.0) && size(params.l) <= 5000",
      { l: list(5_000, (i) => ({ price: i / 100 })) },
      true,
    ],
    ["params.l.exists(x, params.l.exists(y, x + y < 0))", { l: list(80) }, false],
    ["params.l.filter(x, x % 2 == 0).map(x, x * 2).size() == 1500", { l: list(3_000) }, true],
    ['params.a.contains("needle")', { a: `${"hay ".repeat(25_000)}needle` }, true],
    ['params.a.matches("(?i)drop +table")', { a: `${"select 1; ".repeat(2_000)}DROP  TABLE x` }, true],
  ]);
});

test("a large list that no condition reads costs nothing", () => {
  assert.deepEqual(evaluate("params.amount < 10", { amount: 5, rows: list(100_000) }), { value: true });
});

test("the conditions of one decision do not share their steps", () => {
  const compiled = compileCondition("params.l.exists(x, params.l.exists(y, x + y < 0))");
  assert.ok(compiled.ok);
  const shared = activation({ l: list(250) });
  for (let i = 0; i < 10; i++) assert.deepEqual(compiled.condition.evaluate(shared), { value: false });
  assert.deepEqual(compiled.condition.evaluate(activation({ l: list(1_000) })), LIMIT);
});

test("an automaton that a hostile text enlarged is dropped, and does not change later results", () => {
  const known = compilePattern("a[ab]{16}c$");
  const compiled = compileCondition('params.a.matches("a[ab]{16}c$")');
  assert.ok(compiled.ok);
  const noise = Array.from({ length: 4_000 }, (_, i) =>
    (Math.imul(i * i + 7, 2654435761) >>> 16) & 1 ? "a" : "b",
  ).join("");
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(compiled.condition.evaluate(activation({ a: `c${noise}!` })), { value: false });
    assert.deepEqual(compiled.condition.evaluate(activation({ a: `${noise}a${"b".repeat(16)}c` })), { value: true });
  }
  assert.notEqual(compilePattern("a[ab]{16}c$"), known);
});

test("evaluation does not change the process's stack traces", () => {
  const before = Error.stackTraceLimit;
  try {
    Error.stackTraceLimit = 7;
    evaluate("params.nope", {});
    assert.equal(Error.stackTraceLimit, 7);
  } finally {
    Error.stackTraceLimit = before;
  }
});
