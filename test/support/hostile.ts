/**
 * Generates conditions and request bodies of up to 1 MiB that are as expensive to evaluate as possible. The same seed
 * produces the same pairs.
 */
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import type { createRandom } from "./random.ts";

type Random = ReturnType<typeof createRandom>;
type Kind = "bool" | "int" | "double" | "string" | "bytes" | "list" | "map" | "time" | "span" | "any";

const MIB = 1_048_576;

function filled(bytes: number, item: (i: number) => JsonValue): JsonValue[] {
  const items: JsonValue[] = [];
  for (let left = bytes; left > 0;) {
    const next = item(items.length);
    items.push(next);
    left -= JSON.stringify(next).length + 1;
  }
  return items;
}

function named(items: readonly JsonValue[], name: (i: number) => string): JsonObject {
  return Object.fromEntries(items.map((item, i) => [name(i), item]));
}

/** Functions that fill a body, ordered from many small values to few large values. */
const FILLINGS: ((random: Random, bytes: number) => JsonValue)[] = [
  (_, bytes) => "a".repeat(bytes),
  (_, bytes) => "🦊".repeat(bytes / 4),
  (_, bytes) =>
    Array.from({ length: bytes / 4 }, (_unused, i) => String.fromCodePoint(0x10000 + (i % 0xf0000))).join(""),
  (_, bytes) => "0123456789".repeat(bytes / 10),
  (random, bytes) => Array.from({ length: bytes }, () => random.pick(["a", "b"])).join(""),
  (_, bytes) => filled(bytes, () => 1),
  (_, bytes) => filled(bytes, (i) => i),
  (_, bytes) => filled(bytes, (i) => i + 0.5),
  (_, bytes) => filled(bytes, () => ""),
  (_, bytes) => filled(bytes, () => "a".repeat(60)),
  (_, bytes) => filled(bytes, () => "a".repeat(4_000)),
  (_, bytes) => filled(bytes, (i) => `${i}`),
  (_, bytes) => filled(bytes, () => "2026-01-15T10:00:00.123456789+02:00"),
  (_, bytes) => filled(bytes, () => "1h2m3s4ms5us6ns".repeat(4)),
  (_, bytes) => filled(bytes, () => true),
  (_, bytes) => filled(bytes, () => []),
  (_, bytes) => filled(bytes, () => ({})),
  (_, bytes) => filled(bytes, () => [1, 2, 3]),
  (_, bytes) => filled(bytes, () => filled(1_000, (i) => i)),
  (_, bytes) => filled(bytes, () => filled(30_000, () => 1)),
  (_, bytes) => filled(bytes, (i) => ({ a: i, b: "x" })),
  (_, bytes) =>
    named(
      filled(bytes / 3, () => 1),
      (i) => `k${i}`,
    ),
  (_, bytes) =>
    named(
      filled(bytes / 3, () => "a".repeat(20)),
      (i) => `k${i}`,
    ),
  (_, bytes) =>
    named(
      filled(bytes / 2, () =>
        named(
          filled(1_000, () => 1),
          (i) => `${i}`,
        ),
      ),
      (i) => `k${i}`,
    ),
  (_, bytes) =>
    named(
      filled(bytes / 3, () => 1),
      (i) => `${i}`,
    ),
  (_, bytes) =>
    named(
      filled(bytes / 1_000, () => 1),
      (i) => `${"k".repeat(1_000)}${i}`,
    ),
  (_, bytes) =>
    filled(bytes, () =>
      named(
        filled(20_000, () => 1),
        (i) => `k${i}`,
      ),
    ),
  (_, bytes) => filled(bytes, () => deep(60)),
];

function deep(levels: number): JsonValue {
  let value: JsonValue = 1;
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { d: value };
  return value;
}

/** Generates a body of about this many bytes of JSON. */
export function hostileBody(random: Random, bytes = MIB): JsonObject {
  const share = random.pick([[1], [0.5, 0.5], [0.9, 0.1], [0.34, 0.33, 0.33]]);
  const names = ["l", "m", "s"];
  const body: JsonObject = { n: 7, d: 0.5, z: "Europe/Berlin" };
  const same = random.random(3) === 0 ? random.pick(FILLINGS) : null;
  for (const [i, part] of share.entries())
    body[names[i] as string] = (same ?? random.pick(FILLINGS))(random, part * bytes);
  for (const name of names) body[name] ??= body["l"] === undefined ? 1 : random.pick([[1, 2, 3], "a", { a: 1 }]);
  // Conditions can refer to these names. The values that the names have are random.
  return body;
}

/** Generates a condition that usually compiles. */
export function hostileCondition(random: Random): string {
  let comprehensions = 0;

  function of(kind: Kind, depth: number, scope: readonly string[]): string {
    if (kind === "any") return of(random.pick<Kind>(["int", "double", "string", "list", "map", "bool"]), depth, scope);
    const sub = (inner: Kind): string => of(inner, depth - 1, scope);
    const field = (): string => `params.${random.pick(["l", "m", "s"])}`;
    const variable = (): string => (scope.length > 0 && random.random(3) > 0 ? random.pick(scope) : field());
    const loop = (macro: string, body: Kind, extra = ""): string => {
      if (comprehensions >= 8 || scope.length >= 3) return variable();
      comprehensions++;
      const name = ["x", "y", "z"][scope.length] as string;
      return `${sub("list")}.${macro}(${name}, ${extra}${of(body, depth - 1, [...scope, name])})`;
    };
    if (depth <= 0) {
      const small: Record<Exclude<Kind, "any">, string[]> = {
        bool: ["true", "false"],
        int: ["1", "params.n"],
        double: ["1.5", "params.d"],
        string: ['"a"', '"b"', "agent"],
        bytes: ['b"a"'],
        list: ["[1, 2]"],
        map: ['{"a": 1}'],
        time: ["now"],
        span: ['duration("1h")'],
      };
      return random.random(4) === 0 ? random.pick(small[kind]) : variable();
    }
    switch (kind) {
      case "bool": {
        const other = random.pick<Kind>(["int", "double", "string", "bytes", "time", "span", "bool"]);
        return random.pick<() => string>([
          () => `(${sub("bool")} && ${sub("bool")})`,
          () => `(${sub("bool")} || ${sub("bool")})`,
          () => `!${sub("bool")}`,
          () => `(${sub("bool")} ? ${sub("bool")} : ${sub("bool")})`,
          () => `${sub(other)} ${random.pick(["<", "<=", ">", ">="])} ${sub(other)}`,
          () => `${variable()} ${random.pick(["==", "!="])} ${variable()}`,
          () => `${sub("any")} ${random.pick(["==", "!="])} ${sub("any")}`,
          () => `${sub("any")} in ${sub("list")}`,
          () => `${sub("string")} in ${sub("map")}`,
          () => `${sub("string")}.contains(${sub("string")})`,
          () => `${sub("string")}.startsWith(${sub("string")})`,
          () => `${sub("string")}.endsWith(${sub("string")})`,
          () =>
            `${sub("string")}.matches("${random.pick(["^a+$", "(a|b)*c", "a[ab]{13}[cd]$", "[ab]*(aa|bb)[ab]{30}(c|d)$", "\\\\b[ab]+\\\\b|[cd]$", "[\\\\p{L}]+[0-9]$", "a[ab]{40}c$", "[^b]*b", "(?i)q", ".*.*.*x"])}")`,
          () => `bool(${sub("string")})`,
          () => `has(params.${random.pick(["l", "m", "s"])}.${random.pick(["a", "k1"])})`,
          () => loop("all", "bool"),
          () => loop("exists", "bool"),
          () => loop("exists_one", "bool"),
          () => `type(${sub("any")}) == ${random.pick(["int", "list", "map", "string"])}`,
        ])();
      }
      case "int":
        return random.pick<() => string>([
          () => `size(${sub(random.pick<Kind>(["list", "map", "string", "bytes"]))})`,
          () => `${sub(random.pick<Kind>(["list", "map", "string"]))}.size()`,
          () => `(${sub("int")} ${random.pick(["+", "-", "*", "/", "%"])} ${sub("int")})`,
          () => `int(${sub(random.pick<Kind>(["string", "double", "time", "int"]))})`,
          () =>
            `${sub("time")}.${random.pick(["getHours", "getFullYear", "getDayOfYear", "getMilliseconds"])}(${random.pick(["", "params.z", '"+02:00"', sub("string")])})`,
          () => `${sub("span")}.getSeconds()`,
          () => `int(uint(${sub("int")}))`,
          () => `${sub("list")}.${random.pick(["sum", "min", "max"])}()`,
          () => variable(),
        ])();
      case "double":
        return random.pick<() => string>([
          () => `double(${sub(random.pick<Kind>(["string", "int"]))})`,
          () => `(${sub("double")} ${random.pick(["+", "-", "*", "/"])} ${sub("double")})`,
          () => variable(),
        ])();
      case "string":
        return random.pick<() => string>([
          () => `(${sub("string")} + ${sub("string")})`,
          () => `string(${sub(random.pick<Kind>(["int", "double", "bytes", "time", "span", "bool"]))})`,
          () => `(${sub("bool")} ? ${sub("string")} : ${sub("string")})`,
          () => `params.s`,
          () => `"%${random.pick(["s", "x", ".100f", ".100e", "b"])} %s".format([${sub("any")}, ${sub("any")}])`,
          () => `"%s".format([${variable()}])`,
          () => `strings.quote(${sub("string")})`,
          () => variable(),
        ])();
      case "bytes":
        return random.pick<() => string>([
          () => `bytes(${sub("string")})`,
          () => `(${sub("bytes")} + ${sub("bytes")})`,
        ])();
      case "list":
        return random.pick<() => string>([
          () => `(${sub("list")} + ${sub("list")})`,
          () => `[${sub("any")}, ${sub("any")}]`,
          () => loop("map", "any"),
          () => loop("filter", "bool"),
          () => loop("map", "any", `${of("bool", 1, scope)}, `),
          () => variable(),
          () => field(),
          () => `${sub("list")}[${sub("int")}]`,
        ])();
      case "map":
        return random.pick<() => string>([
          () => `{"a": ${sub("any")}, ${sub("string")}: ${sub("any")}}`,
          () => `{${sub("int")}: ${sub("any")}}`,
          () => `${sub("map")}[${sub("string")}]`,
          () => variable(),
          () => field(),
        ])();
      case "time":
        return random.pick<() => string>([
          () => "now",
          () => `timestamp(${sub(random.pick<Kind>(["string", "int"]))})`,
          () => `(${sub("time")} ${random.pick(["+", "-"])} ${sub("span")})`,
        ])();
      case "span":
        return random.pick<() => string>([
          () => `duration(${sub("string")})`,
          () => `(${sub("time")} - ${sub("time")})`,
          () => `(${sub("span")} ${random.pick(["+", "-"])} ${sub("span")})`,
        ])();
    }
  }

  // Loops are the most expensive part. An `exists` that never matches visits every element.
  const source = of("bool", 2 + random.random(4), []);
  return random.pick([
    source,
    `params.l.exists(x, ${of("bool", 2, ["x"])} && false)`,
    `params.${random.pick(["l", "m"])}.exists(x, params.${random.pick(["l", "m", "s"])}.exists(y, ${of("bool", 2, ["x", "y"])} && false))`,
    `params.l.map(x, ${of("any", 2, ["x"])}).size() < 0`,
    `params.l.filter(x, ${of("bool", 2, ["x"])}) == params.m`,
  ]);
}
