/** What is made once comes out as it did where it was made at each evaluation: value, error and steps, in both editions. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { celList, CelScalar, celUint, isCelError, parse, plan } from "@bufbuild/cel";
import { reflect } from "@bufbuild/protobuf/reflect";
import { DurationSchema, timestampFromMs, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { makeOnce } from "../../src/domain/policy/cel-constants.ts";
import { NO_CONVERSIONS } from "../../src/domain/policy/cel-conversions.ts";
import { Meter, onMeter, type Callable } from "../../src/domain/policy/cel-meter.ts";
import { CEL_1, CEL_2, type CelEdition } from "../../src/domain/policy/cel.ts";
import { showCel } from "../../src/domain/policy/cel-show.ts";
import { toCelValue } from "../../src/domain/policy/cel-values.ts";
import { inspect } from "../../src/domain/policy/condition-shape.ts";
import { Activation, compileExpression } from "../../src/domain/policy/condition.ts";
import { parsePolicies } from "../../src/domain/policy/parse.ts";
import { chance } from "../support/chance.ts";
import { ROOT } from "../support/process.ts";

const REQUESTS = [
  { amount: 50, s: "a", list: [1, "a", 2.5, null, [1, 2], { k: 1 }, true], m: { k: "amount" }, n: null },
  { amount: "12", s: "2024-01-01T00:00:00Z", list: [], m: {}, n: 9007199254740991, int: 1, string: "x" },
  { amount: -0, s: "a".repeat(2_000), list: Array.from({ length: 300 }, (_, i) => `item ${i}`), m: {}, n: 1 },
].map((params) => ({ agent_id: "support-bot", tool: "stripe", operation: "refund", params, context: { int: "x" } }));
const NOW = Date.UTC(2026, 0, 15);
const FACTS = { principal: { key_id: "k", name: "n", agent_id: null, owner: "o" } };

/** Names of types that are something else there, lists that are seen by more than `in`, and what holds no constant. */
const TRICKY = [
  '["a"].all(int, int == "a" && int in ["a", "b"])',
  '[string, 1].exists(string, string == "x" || type(string) == string)',
  "params.list.exists(type, type in [int, string])",
  "[1].map(x, [3, 4]) == [1].map(x, [3, 4])",
  "[1, 2].map(x, [3, 4]).all(y, y == [3, 4] && y in [[3, 4]])",
  "[[3, 4], [3, 4]].all(y, [1, 2].map(x, [3, 4])[0] == y)",
  "[1, 2, 3, 4].map(x, [1, 2, 3]).filter(l, l == [1, 2, 3]).size() == 4",
  "1 in [1u, 2.0, 1] && 1u in [1] && 1.0 in [1u] && null in [null]",
  'b"ab" in [b"ab"] && !("1" in [1]) && 9007199254740993 in [9007199254740993]',
  "type(params.amount) in [int, double] && type(params) == map && type(params.list) != list",
  "type(type(1)) == type && type(null) == null_type && type(now) == google.protobuf.Timestamp",
  'params.amount in [1, params.none] || "a" in []',
  "params.list.all(item, item in params.list && type(item) == string)",
  'params.list.exists(item, item in ["x", "y", "z"])',
  'params.s in ["a", "b"] ? int == int : params.none in [1]',
  "[1, 2][0] in [1, 2] && ([1] + [2]) in [[1, 2]] && {1: int}[1] == int",
  "[[1, 2].map(x, true ? [3, 4] : [5])].all(l, l[0] == l[1])",
  '"k" in {"k": 1} && "k" in params.m',
  "int == double || !(string != int) || uint in [uint]",
  ".int == int || int in [.int]",
  "1 + (2 in [1, 2])",
];

const CONSTANTS = ['"a"', '"é𐀀"', "1", "-2", "1.0", "true", "null", "2u", 'b"ab"', '""', "9007199254740993"];
const TYPES = ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"];
const PATHS = ["params.amount", "params.s", "params.list", "params.m", "params.none", "params", "agent", "now"];

function generated(count: number): string[] {
  const { random, pick } = chance(1);
  const some = (make: () => string): string => `[${Array.from({ length: random(4) }, make).join(", ")}]`;
  function expression(depth: number, scope: readonly string[]): string {
    if (depth === 0) return pick([...CONSTANTS, ...TYPES, ...PATHS, ...scope, ...scope, ...scope]);
    const part = (): string => `(${expression(depth - 1, scope)})`;
    const constants = (): string => some(() => pick([...CONSTANTS, ...CONSTANTS, ...TYPES]));
    const name = pick(["item", "int", "string", "type"]);
    const loop = (): string => expression(depth - 1, [...scope, name]);
    return pick([
      () => `${part()} in ${constants()}`,
      () => `type(${part()}) in ${constants()}`,
      () => `${part()} in ${some(part)}`,
      () => `${part()} in ${part()}`,
      () => `type(${part()}) == ${pick(TYPES)}`,
      () => `${pick(TYPES)} != ${part()}`,
      () => `${part()} ${pick(["==", "!=", "<", "+", "&&", "||"])} ${part()}`,
      () => `${part()} ? ${part()} : ${part()}`,
      () => `!${part()}`,
      () => `${pick(["params.list", "params.m", constants()])}.${pick(["all", "exists", "map"])}(${name}, ${loop()})`,
      () => `{${part()}: ${part()}}`,
      () => `${constants()}[${part()}]`,
      () => constants(),
    ])();
  }
  return Array.from({ length: count }, (_, i) => expression(1 + (i % 3), []));
}

/** Every condition of the policies and packs that come with the service. */
function released(): string[] {
  return ["policies", "policies/packs"].flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith(".yaml") && !name.endsWith("_test.yaml"))
      .flatMap((name) => parsePolicies(readFileSync(join(ROOT, folder, name), "utf8"), name).documents)
      .flatMap(({ rules }) => rules.map(({ when }) => when))
      .filter((when) => when !== undefined),
  );
}

function outcomes(source: string, edition: CelEdition, once: boolean): string[] {
  const parsed = parse(source);
  const { nodes } = inspect(parsed, false);
  if (once) makeOnce(parsed.expr);
  const run = plan(edition.env, parsed);
  return REQUESTS.map((request) => {
    const activation = new Activation(request, FACTS, NOW, edition);
    const meter = new Meter(edition.maxSteps);
    meter.charge(nodes);
    const result = onMeter(meter, () => run(activation.bindings()));
    const shown = isCelError(result) ? `error ${result.message}` : `${typeof result} ${showCel(result)}`;
    return `${meter.tripped ? "too much" : shown} after ${edition.maxSteps - meter.left}`;
  });
}

describe("what conditions make once", () => {
  it("comes out as it did, to the step, in both editions", () => {
    const sources = new Set([...released(), ...TRICKY]);
    assert.ok(sources.size > 60, `${sources.size} conditions`);
    for (const source of generated(700)) if (compileExpression(source).ok) sources.add(source);
    let differ = 0;
    for (const source of sources)
      for (const edition of [CEL_1, CEL_2]) {
        const before = outcomes(source, edition, false);
        assert.deepEqual(outcomes(source, edition, true), before, source);
        differ += new Set(before).size - 1;
      }
    assert.ok(differ > 200, "requests differ in what comes out");
  });

  it("is what a condition is evaluated with", () => {
    for (const source of [...released(), ...TRICKY])
      for (const edition of [CEL_1, CEL_2]) {
        const compiled = compileExpression(source, "expression", edition);
        assert.ok(compiled.ok, source);
        const steps = REQUESTS.map((request) => {
          const activation = new Activation(request, FACTS, NOW, edition);
          compiled.expression.evaluate(activation);
          return `after ${edition.maxSteps - activation.meter(false).left}`;
        });
        assert.deepEqual(
          outcomes(source, edition, false).map((outcome) => /after .*$/.exec(outcome)?.[0]),
          steps,
          source,
        );
      }
  });

  it("does not hide a name that is an element's", () => {
    const [request] = REQUESTS;
    assert.ok(request !== undefined);
    for (const [source, value] of [
      ['["a"].all(int, int == "a" && int in ["a", "b"])', true],
      ["[1].exists(string, type(string) == string)", false],
      ["type(1) in [int, string] && type(1) == int", true],
    ] as const) {
      const compiled = compileExpression(source);
      assert.ok(compiled.ok);
      assert.deepEqual(compiled.expression.evaluate(new Activation(request, FACTS, NOW)), { value }, source);
    }
  });
});

it("a function takes what the evaluator itself would let it take", () => {
  const message = (at: number) => reflect(TimestampSchema, timestampFromMs(at));
  const values: unknown[] = [1n, 1.5, true, "12", new Uint8Array(2), null, celUint(3n), celList([1n]), CelScalar.INT];
  values.push(toCelValue({ k: 1 }), toCelValue([1, "a"]), message(NOW), reflect(DurationSchema));
  let taken = 0;
  for (const { env } of [CEL_1, CEL_2])
    for (const func of env.funcs as Iterable<unknown> as Iterable<Callable>) {
      const own = Object.getPrototypeOf(func) as Callable;
      if (own === Object.prototype || NO_CONVERSIONS.includes(func.id)) continue;
      const targets = [undefined, ...values];
      const lists = [[], ...values.map((a) => [a]), ...values.flatMap((a) => values.map((b) => [a, b]))];
      for (const target of targets)
        for (const args of lists) {
          const call = (one: Callable): unknown => onMeter(new Meter(1e6), () => one.call(1, target, [...args]));
          const isTaken = call(func) !== undefined;
          assert.equal(isTaken, call(own) !== undefined, `${func.id} of ${String(target)} and ${String(args)}`);
          if (isTaken) taken++;
        }
    }
  assert.ok(taken > 500, `${taken} calls`);
});
