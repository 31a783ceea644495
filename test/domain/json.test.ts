import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  checkJson,
  decodeUtf8,
  JsonFault,
  parseJson,
  type JsonFaultCode,
  type JsonLimits,
} from "../../src/domain/json.ts";

function faultOf(text: string, limits?: JsonLimits): JsonFault | null {
  try {
    parseJson(text, limits);
    return null;
  } catch (error) {
    if (error instanceof JsonFault) return error;
    throw error;
  }
}

function refuses(text: string, code: JsonFaultCode, pointer?: string | null, offset?: number | null): void {
  const fault = faultOf(text);
  assert.equal(fault?.code, code, text.slice(0, 80));
  if (pointer !== undefined) assert.equal(fault?.pointer, pointer, `pointer of ${text.slice(0, 80)}`);
  if (offset !== undefined) assert.equal(fault?.offset, offset, `offset of ${text.slice(0, 80)}`);
}

describe("duplicate keys", () => {
  test("are found at every depth, with a pointer to the second", () => {
    refuses('{"a":1,"a":2}', "DUPLICATE_KEY", "/a", 7);
    refuses('{"a":{"b":[0,{"c":1,"c":1}]}}', "DUPLICATE_KEY", "/a/b/1/c", 20);
    refuses('[[],{},{"x":{},"y":[],"x":null}]', "DUPLICATE_KEY", "/2/x");
    refuses('{"":1,"":2}', "DUPLICATE_KEY", "/");
    refuses('{"a/b~c":1,"a/b~c":2}', "DUPLICATE_KEY", "/a~1b~0c");
  });

  test("are compared decoded", () => {
    refuses(String.raw`{"a":1,"\u0061":2}`, "DUPLICATE_KEY", "/a");
    refuses(String.raw`{"\u0061":1,"a":2}`, "DUPLICATE_KEY", "/a");
    refuses(String.raw`{"amount":1,"\u0061mo\u0075nt":1000000}`, "DUPLICATE_KEY", "/amount");
    refuses(String.raw`{"\u00E9":1,"\u00e9":2}`, "DUPLICATE_KEY", "/é");
    refuses(String.raw`{"/":1,"\/":2}`, "DUPLICATE_KEY", "/~1");
    refuses(String.raw`{"\n":1,"\u000a":2}`, "DUPLICATE_KEY");
    refuses(String.raw`{"\"":1,"\u0022":2}`, "DUPLICATE_KEY", '/"');
    refuses('{"😂":1,"\\ud83d\\ude02":2}', "DUPLICATE_KEY", "/😂");
    refuses('{"__proto__":1,"__proto__":2}', "DUPLICATE_KEY", "/__proto__");
  });

  test("are searched among the keys of one object, not among values", () => {
    for (const text of [
      '{"a":{"a":{"a":1}}}',
      '[{"a":1},{"a":1}]',
      '{"a":"a","b":"a"}',
      '{"a":[{"a":1},{"a":2}],"b":{"a":3}}',
      '{"a":"\\"a\\":","b":1}',
      '{"A":1,"a":2}',
      '{"é":1,"e\u0301":2}',
      '{"a":1," a":2}',
    ]) {
      assert.deepEqual(parseJson(text), JSON.parse(text));
    }
  });

  test("are found after a fault that the reader can ignore", () => {
    const isHarmless = (code: JsonFaultCode, member: string): boolean => code !== "DUPLICATE_KEY" && member === "out";
    for (const harmless of ["9007199254740993", '"\\ud800"', '"\ud800"', "1e400"]) {
      assert.deepEqual(parseJson(`{"out":${harmless}}`, { isHarmless }), JSON.parse(`{"out":${harmless}}`));
      assert.equal(faultOf(`{"out":${harmless},"a":1,"a":2}`, { isHarmless })?.code, "DUPLICATE_KEY");
      assert.notEqual(faultOf(`{"in":${harmless}}`, { isHarmless }), null);
    }
  });

  test("a fault reports the outermost member and its depth, and does not cost more when it is deep", () => {
    const seen: [JsonFaultCode, string, number][] = [];
    const isHarmless = (...of: [JsonFaultCode, string, number]): boolean => seen.push(of) > 0;
    parseJson('{"a":[1e400,{"b":1,"b":2}],"\\ud800":1,"a":0,"c~/":[[1e400]]}', { isHarmless });
    assert.deepEqual(seen, [
      ["UNSAFE_INTEGER", "a", 2],
      ["DUPLICATE_KEY", "a", 3],
      ["LONE_SURROGATE", "", 1],
      ["DUPLICATE_KEY", "a", 1],
      ["UNSAFE_INTEGER", "c~/", 3],
    ]);
    // Formatting each number's place would take 1.8 thousand million steps.
    const deep = 60_000;
    let faults = 0;
    checkJson(`${"[1e400,".repeat(deep)}0${"]".repeat(deep)}`, { maxDepth: Infinity, isHarmless: () => ++faults > 0 });
    assert.equal(faults, deep);
  });

  test("the message quotes the key and stays short", () => {
    assert.equal(faultOf('{"a":1,"a":2}')?.message, 'the key "a" appears twice in one object');
    const long = "k".repeat(100_000);
    const fault = faultOf(`{"${long}":1,"${long}":2}`);
    assert.equal(fault?.code, "DUPLICATE_KEY");
    assert.ok((fault?.message.length ?? 0) < 200);
  });
});

describe("lone surrogates", () => {
  test("raw or escaped, in values and in keys, are rejected", () => {
    for (const half of [
      "\ud800",
      "\udbff",
      "\udc00",
      "\udfff",
      "\\ud800",
      "\\uDFFF",
      "\\udc00\\ud800",
      "\ude02\ud83d",
      "\\ud83dx\\ude02",
      "\\ud83d\\ud83d\\ude02",
      "\\\\\\ud800",
      "\ud83d\ud83d\ude02",
    ]) {
      refuses(`"${half}"`, "LONE_SURROGATE", "");
      refuses(`{"a":["x","${half}"]}`, "LONE_SURROGATE", "/a/1");
      refuses(`{"a":1,"b":{"c":0,"${half}":1}}`, "LONE_SURROGATE", "/b");
      refuses(`{"${half}":1}`, "LONE_SURROGATE", "");
    }
  });

  test("a pair with one half escaped and one raw is rejected", () => {
    refuses('"\ud83d\\ude02"', "LONE_SURROGATE");
    refuses('"\\ud83d\ude02"', "LONE_SURROGATE");
  });

  test("pairs, and backslashes before the letter u, are accepted", () => {
    for (const text of [
      '"😂"',
      '"\\ud83d\\ude02"',
      '"\\\\ud800"',
      '"\\\\\\\\udc00"',
      '{"😂":"\\uD83D\\uDE02"}',
      '"\\ud7ff\\ue000"',
    ])
      assert.deepEqual(parseJson(text), JSON.parse(text));
  });
});

describe("numbers", () => {
  test("integers that a double cannot represent are rejected", () => {
    for (const number of [
      "9007199254740992",
      "9007199254740993",
      "-9007199254740992",
      "-9007199254740993",
      "10000000000000000",
      "123456789012345678901234567890",
      "1".repeat(10_000),
    ]) {
      refuses(number, "UNSAFE_INTEGER", "", 0);
      refuses(`{"params":{"ids":[1,${number}]}}`, "UNSAFE_INTEGER", "/params/ids/1", 20);
    }
  });

  test("integers up to 2^53 - 1 are exact", () => {
    for (const number of ["0", "-0", "9007199254740991", "-9007199254740991", "999999999999999", "1000000000000000"])
      assert.equal(parseJson(number), Number(number));
  });

  test("a fraction or an exponent makes a double, which is accepted", () => {
    for (const number of [
      "9007199254740992.0",
      "1e15",
      "1E+30",
      "1e308",
      "0.1",
      "-1.5e-300",
      "5e-324",
      "4.9406564584124654e-324",
      "2.2250738585072014e-308",
      "-0.0e5",
      "0e-400",
      `0.${"0".repeat(400)}`,
      "123456789012345678901234567890e-20",
      "1e22",
      "1.7976931348623157e308",
      "3.141592653589793238462643383279",
    ])
      assert.equal(parseJson(number), Number(number), number);
  });

  test("an overflow to infinity is rejected", () => {
    for (const number of ["1e309", "-1e309", "1E400", "1e99999999999", `${"9".repeat(400)}.5`, `${"9".repeat(310)}e1`])
      refuses(`[0,${number}]`, "UNSAFE_INTEGER", "/1");
  });

  test("a number that becomes 0, or another number close to 0 or beyond 2^53, is rejected", () => {
    for (const number of [
      "1e-400",
      "-1e-400",
      "1E-324",
      "1e-99999999999",
      `0.${"0".repeat(400)}1`,
      `${"1".repeat(20)}e-400`,
      "3e-324",
      "4.95e-324",
      "1.23456789e-320",
      "9007199254740993.0",
      "9.007199254740993e15",
      "-900719925474099312.5",
      "123456789012345678901234567890e-10",
      `1${"0".repeat(100)}1.5`,
    ])
      refuses(`{"a":[0,${number}]}`, "UNSAFE_INTEGER", "/a/1");
    // Counting the digits takes linear time.
    refuses(`1${"0".repeat(1_000_000)}1e-1000320`, "UNSAFE_INTEGER", "");
  });

  test("digits in a string are not a number", () => {
    assert.deepEqual(parseJson('{"9007199254740993":"123456789012345678901 1e999"}'), {
      "9007199254740993": "123456789012345678901 1e999",
    });
  });

  test("the message quotes the number, says what to do, stays short", () => {
    assert.equal(
      faultOf("9007199254740993")?.message,
      "the number 9007199254740993 cannot be represented exactly; send it as a string",
    );
    assert.ok((faultOf("1".repeat(10_000))?.message.length ?? 0) < 200);
  });
});

describe("nesting", () => {
  const nest = (depth: number, open = "[", close = "]", inner = ""): string =>
    open.repeat(depth) + inner + close.repeat(depth);

  test("64 levels pass, 65 do not; arrays, objects and both", () => {
    assert.deepEqual(parseJson(nest(64)), JSON.parse(nest(64)));
    refuses(nest(65), "TOO_DEEP", "/0".repeat(64), 64);
    assert.deepEqual(parseJson(nest(64, '{"a":', "}", "1")), JSON.parse(nest(64, '{"a":', "}", "1")));
    refuses(nest(65, '{"a":', "}", "1"), "TOO_DEEP", "/a".repeat(64));
    assert.equal(faultOf(nest(32, '{"a":[', "]}"))?.code, undefined);
    refuses(nest(33, '{"a":[', "]}"), "TOO_DEEP");
  });

  test("width is not depth", () => {
    const wide = `[${"[],{},".repeat(50_000)}0]`;
    assert.equal((parseJson(wide) as unknown[]).length, 100_001);
  });

  test("brackets in a string do not nest", () => {
    assert.equal(parseJson(`"${"[{".repeat(1000)}"`), "[{".repeat(1000));
  });

  test("20,000 and a million levels are refused like 65, closed or not", () => {
    for (const depth of [20_000, 1_000_000]) {
      refuses(nest(depth), "TOO_DEEP");
      refuses("[".repeat(depth), "TOO_DEEP");
      refuses('{"a":'.repeat(depth), "TOO_DEEP");
    }
  });

  test("the limit can be set", () => {
    assert.equal(faultOf("[[[]]]", { maxDepth: 2 })?.code, "TOO_DEEP");
    assert.equal(faultOf("[[[]]]", { maxDepth: 3 }), null);
    assert.equal(faultOf("1", { maxDepth: 0 }), null);
    assert.equal(faultOf("[]", { maxDepth: 0 })?.code, "TOO_DEEP");
  });
});

describe("syntax", () => {
  test("whatever JSON.parse rejects is malformed", () => {
    for (const text of [
      "",
      " ",
      "{",
      "}",
      "[",
      "]",
      "{]",
      "[}",
      '"',
      '"a',
      '"\\',
      '"\\u',
      '"\\u00',
      '"\\x"',
      '"\n"',
      '"\u0000"',
      "'a'",
      "nul",
      "undefined",
      "NaN",
      "Infinity",
      "-",
      "+1",
      "01",
      "-01",
      "1.",
      ".5",
      "1e",
      "1e+",
      "0x10",
      "1_0",
      "1 2",
      "[1,]",
      "[,1]",
      "[1 2]",
      '{"a"}',
      '{"a":}',
      '{"a":1,}',
      "{a:1}",
      "{1:1}",
      '{"a" 1}',
      '{"a":1 "b":2}',
      "{,}",
      "[1]]",
      "{}{}",
      "// x\n1",
      "/* */1",
      "\u00a01",
      "1\u2028",
      "\u000b1",
      "--1",
      "1-2",
      "[1,2",
      '{"a":[1,{"b":2}',
    ]) {
      assert.throws(() => JSON.parse(text), SyntaxError, text);
      refuses(text, "MALFORMED_JSON");
    }
  });

  test("a byte order mark is reported by name", () => {
    refuses("\ufeff{}", "MALFORMED_JSON", null, 0);
    assert.match(faultOf("\ufeff{}")?.message ?? "", /byte order mark/);
  });

  test("values, white space and escapes are as in JSON.parse", () => {
    for (const text of [
      "null",
      "true",
      "false",
      "0",
      '""',
      " \t\r\n[ ] ",
      '{"a" : [ 1 , 2.5 , "x" , null , { } ] }',
      '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041"',
      '{"\\u0000":"\\u001f"}',
      '"\u2028\u007f"',
    ]) {
      assert.deepEqual(parseJson(text), JSON.parse(text));
    }
  });

  test("keys with a meaning in JavaScript are own members", () => {
    const value = parseJson('{"__proto__":{"admin":true},"constructor":1,"toString":2,"hasOwnProperty":3}') as Record<
      string,
      unknown
    >;
    assert.deepEqual(Object.keys(value), ["__proto__", "constructor", "toString", "hasOwnProperty"]);
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    assert.equal(({} as { admin?: boolean }).admin, undefined);
    assert.equal((value as { admin?: boolean }).admin, undefined);
  });
});

describe("bytes", () => {
  test("are read as strict UTF-8, again after a failure", () => {
    for (const hex of ["ff", "c0af", "e282", "eda080", "f4908080", "80", "f09f98", "c3", "2261ff22"]) {
      assert.equal(decodeUtf8(new Uint8Array(Buffer.from(hex, "hex"))), null, hex);
      assert.equal(decodeUtf8(new Uint8Array(Buffer.from("€😂"))), "€😂", `after ${hex}`);
    }
    assert.equal(decodeUtf8(new Uint8Array(0)), "");
    assert.equal(decodeUtf8(new Uint8Array(Buffer.from("a\u0000b"))), "a\u0000b");
  });

  test("a byte order mark survives decoding, so that parsing rejects it", () => {
    const text = decodeUtf8(new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d]));
    assert.equal(text, "\ufeff{}");
    refuses(text as string, "MALFORMED_JSON");
  });
});

/** xorshift32: the same texts for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

const SCRAPS = [
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  '"',
  "\\",
  " ",
  "\n",
  "0",
  "1",
  "-",
  ".",
  "e",
  "E",
  "+",
  "null",
  "true",
  "\\u0061",
  "\\ud83d",
  "\\ude02",
  "\ud83d",
  "\ude02",
  "😂",
  "a",
  '"a"',
  '"a":',
  '"\\u0061":',
  "9007199254740993",
  "9007199254740991",
  "1e999",
  "\ufeff",
  "__proto__",
  "\u0000",
] as const;
const TEXTS = [
  "a",
  "b",
  "",
  "é",
  "😂",
  "\\u0061",
  "\\n",
  "\\ud83d\\ude02",
  "x\\\\",
  '\\"',
  "__proto__",
  "[1,{",
  "9007199254740993",
] as const;
const NUMBERS = [
  "0",
  "-0",
  "7",
  "-12.5",
  "1e3",
  "9007199254740991",
  "0.1E-2",
  "123456789012345",
  "5e-324",
  "12e-324",
  "1e-400",
  "9007199254740993.0",
  "1e22",
  "123456789012345678.25",
] as const;

function generate(next: (below: number) => number, depth: number): string {
  const pick = <T>(from: readonly T[]): T => from[next(from.length)] as T;
  const kind = next(depth > 4 ? 4 : 7);
  if (kind === 0) return pick(["null", "true", "false"]);
  if (kind === 1) return pick(NUMBERS);
  if (kind <= 3) return `"${pick(TEXTS)}"`;
  const items = Array.from({ length: next(4) }, () => generate(next, depth + 1));
  return kind === 4
    ? `[${items.join(pick([",", ", "]))}]`
    : `{${items.map((item) => `"${pick(TEXTS)}":${item}`).join(",")}}`;
}

/** Finds faults of a text that JSON.parse accepts with a second algorithm: over tokens, recursively. */
function judge(text: string): Set<JsonFaultCode> {
  const faults = new Set<JsonFaultCode>();
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[{}[\],:]|true|false|null/gu) ?? [];
  let at = 0;
  const string = (token: string): string => {
    const value = JSON.parse(token) as string;
    if (/\p{Cs}/u.test(value) || /\p{Cs}/u.test(token)) faults.add("LONE_SURROGATE");
    return value;
  };
  const value = (): void => {
    const token = tokens[at++] as string;
    if (token === "[" || token === "{") {
      const keys: string[] = [];
      while (tokens[at] !== "]" && tokens[at] !== "}") {
        if (tokens[at] === ",") at++;
        if (token === "{") {
          keys.push(string(tokens[at] as string));
          at += 2;
        }
        value();
      }
      at++;
      if (new Set(keys).size < keys.length) faults.add("DUPLICATE_KEY");
    } else if (token.startsWith('"')) {
      string(token);
    } else if (/^-?\d/.test(token)) {
      if (
        /^-?\d+$/.test(token)
          ? BigInt(token) > 9007199254740991n || BigInt(token) < -9007199254740991n
          : !keepsValueExactly(token)
      )
        faults.add("UNSAFE_INTEGER");
    }
  };
  value();
  return faults;
}

/** Compares the double with the decimal number in exact arithmetic: it must be at most half a unit of the last digit away. */
function keepsValueExactly(token: string): boolean {
  let value = Math.abs(Number(token));
  if (value === 0 || !Number.isFinite(value)) return !/^[^e]*[1-9]/i.test(token);
  if (value >= 2 ** -1022 && value < 2 ** 53) return true;
  const [mantissa = "", exponent = "0"] = token.replace(/^-/, "").toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const digits = (whole + fraction).replace(/0+$/, "");
  const unit = Number(exponent) + whole.length - digits.length;
  let powerOfTwo = 1n;
  for (; !Number.isInteger(value); value *= 2) powerOfTwo *= 2n;
  const [up, down] = unit > 0 ? [10n ** BigInt(unit), 1n] : [1n, 10n ** BigInt(-unit)];
  const difference = BigInt(digits) * up * powerOfTwo - BigInt(value) * down;
  return 2n * (difference < 0n ? -difference : difference) <= up * powerOfTwo;
}

test("fuzz: a string is accepted exactly if JSON.parse accepts it and it has no other fault, with the same value", (t) => {
  const seed = Number(process.env["FUZZ_SEED"] ?? Date.now() % 2 ** 31);
  t.diagnostic(`FUZZ_SEED=${seed}`);
  const next = random(seed);
  const seen: Record<string, number> = {};
  for (let round = 0; round < 40_000; round++) {
    let text = generate(next, 0);
    for (let edits = next(4); edits > 0; edits--) {
      const from = next(text.length + 1);
      text =
        text.slice(0, from) +
        (next(2) === 0 ? (SCRAPS[next(SCRAPS.length)] as string) : "") +
        text.slice(from + next(3));
    }
    const told = `FUZZ_SEED=${seed}, round ${round}: ${JSON.stringify(text)}`;
    const fault = faultOf(text);
    let expected: unknown;
    let valid = true;
    try {
      expected = JSON.parse(text);
    } catch {
      valid = false;
    }
    seen[fault?.code ?? "accepted"] = (seen[fault?.code ?? "accepted"] ?? 0) + 1;
    if (!valid) {
      assert.ok(fault !== null, `accepted what JSON.parse rejects: ${told}`);
      continue;
    }
    const faults = judge(text);
    if (fault === null) {
      assert.deepEqual([...faults], [], `accepted: ${told}`);
      assert.deepStrictEqual(parseJson(text), expected, told);
    } else {
      assert.ok(
        faults.has(fault.code),
        `refused as ${fault.code}, rightly ${[...faults].join(" ") || "accepted"}: ${told}`,
      );
    }
  }
  // A fuzz test must reach every branch.
  for (const code of ["accepted", "MALFORMED_JSON", "DUPLICATE_KEY", "LONE_SURROGATE", "UNSAFE_INTEGER"])
    assert.ok((seen[code] ?? 0) > 20, `${code}: ${seen[code] ?? 0} of 40000, FUZZ_SEED=${seed}`);
});
