import assert from "node:assert/strict";
import { test } from "node:test";
import canonicalize from "canonicalize";
import { canonicalBytes, canonicalText, insertMember } from "../../src/domain/canonical.ts";
import { parseJson, type JsonValue } from "../../src/domain/json.ts";

const canonical = (value: unknown): string => canonicalText(value as JsonValue);

test("keys are sorted by UTF-16 code units", () => {
  const text = canonical({
    "\u20ac": 1,
    "\r": 2,
    "\ufb33": 3,
    "1": 4,
    "\u{1f602}": 5,
    "\u0080": 6,
    "\u00f6": 7,
    "</script>": 8,
    "\n": 9,
  });
  assert.equal(text, '{"\\n":9,"\\r":2,"1":4,"</script>":8,"\u0080":6,"\u00f6":7,"\u20ac":1,"\u{1f602}":5,"\ufb33":3}');
});

test("keys that look like numbers sort as strings: 10 before 9", () => {
  assert.equal(canonical({ 9: 1, 10: 2, "-1": 3 }), '{"-1":3,"10":2,"9":1}');
});

test("strings are escaped as in RFC 8785 section 3.2.2.2 and not normalised", () => {
  assert.equal(
    canonical('\u0000\u0008\u0009\u000a\u000b\u000c\u000d\u001f"\\/\u007f\u2028'),
    '"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\"\\\\/\u007f\u2028"',
  );
  assert.notEqual(canonical("\u00e9"), canonical("e\u0301"));
});

test("bytes are the text in UTF-8", () => {
  assert.deepEqual(canonicalBytes({ b: "€", a: "😂" }), new Uint8Array(Buffer.from('{"a":"😂","b":"€"}', "utf8")));
});

test("the order of members does not matter, the order of elements does", () => {
  assert.equal(
    canonical(JSON.parse('{"b":[{"d":1,"c":2}],"a":null}')),
    canonical(JSON.parse('{"a":null,"b":[{"c":2,"d":1}]}')),
  );
  assert.notEqual(canonical([1, 2]), canonical([2, 1]));
});

test("canonical text is a fixed point of parsing", () => {
  for (const text of ['{"a":[1,2.5,-0.001,1e+21,"x",null,true,{}],"b":{"":[]}}', "0", '""', "[[[]]]", "null"])
    assert.equal(canonical(parseJson(text)), text);
});

test("undefined is rejected at every position, so that no member can vanish", () => {
  for (const value of [undefined, [undefined], [1, undefined, 2], { a: undefined }, { a: [{ b: undefined }] }]) {
    assert.throws(() => canonical(value), {
      name: "TypeError",
      message: "there is no canonical JSON for a value of type undefined: use null for absent values",
    });
  }
  // eslint-disable-next-line no-sparse-arrays
  assert.throws(() => canonical([, 1]), TypeError, "a hole would be written as [,1]");
});

test("values that JSON cannot express are rejected, not left out", () => {
  for (const value of [() => 1, Symbol("s"), 1n]) {
    assert.throws(() => canonical(value), TypeError);
    assert.throws(() => canonical([value]), TypeError);
    assert.throws(() => canonical({ a: value }), TypeError);
  }
  for (const value of [
    new Date(0),
    new Map([[1, 2]]),
    new Set([1]),
    new Uint8Array(2),
    /x/,
    new (class Odd {
      a = 1;
    })(),
    Object.create({ inherited: 1 }),
  ]) {
    assert.throws(() => canonical({ a: value }), { name: "TypeError", message: /not plain/ });
  }
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
    assert.throws(() => canonical({ a: [value] }));
});

test("lone surrogates are rejected in values and keys, pairs are not", () => {
  for (const text of ["\ud800", "\udc00", "a\ud83d", "\ude02\ud83d", "\ud83d\ud83d\ude02"]) {
    assert.throws(() => canonical({ a: text }), /surrogate/i, JSON.stringify(text));
    assert.throws(() => canonical({ [text]: 1 }), /surrogate/i, JSON.stringify(text));
  }
  assert.equal(canonical("\ud83d\ude02"), '"😂"');
});

test("keys with a meaning in JavaScript are data", () => {
  const value = JSON.parse(
    '{"toJSON":"x","__proto__":{"toJSON":1},"constructor":null,"hasOwnProperty":0,"length":2}',
  ) as JsonValue;
  assert.equal(
    canonical(value),
    '{"__proto__":{"toJSON":1},"constructor":null,"hasOwnProperty":0,"length":2,"toJSON":"x"}',
  );
  assert.equal(canonical(Object.assign(Object.create(null) as object, { b: 1, a: 2 })), '{"a":2,"b":1}');
  assert.throws(() => canonical({ toJSON: () => "hidden" }), TypeError, "a method cannot replace what is hashed");
});

test("too deep or circular values are rejected with a message, not a stack overflow", () => {
  const nest = (depth: number): JsonValue => {
    let value: JsonValue = 1;
    for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
    return value;
  };
  assert.equal(canonical(JSON.parse(canonical(nest(1000)))), canonical(nest(1000)));
  for (const depth of [1001, 20_000, 200_000])
    assert.throws(() => canonical(nest(depth)), { name: "RangeError", message: /deeper than 1000 levels/ }, `${depth}`);
  const loop: Record<string, unknown> = {};
  loop["self"] = { loop };
  assert.throws(() => canonical(loop), { name: "RangeError", message: /contains itself/ });
});

test("one value at two positions is not circular", () => {
  const shared = { x: 1 };
  assert.equal(canonical([shared, { shared }]), '[{"x":1},{"shared":{"x":1}}]');
});

test("sorted values, whole or in part, have the same text as the package writes", () => {
  const inOrder = { a: [1, { b: null, c: "é" }], d: { e: true, f: [] }, g: -0 };
  const values: JsonValue[] = [
    inOrder,
    { g: -0, a: inOrder.a, d: { f: [], e: true } },
    { a: { z: 1, y: 2 }, b: inOrder, c: [inOrder, { z: 1, y: inOrder }] },
    [inOrder, [{ b: 1, a: 2 }], inOrder],
    { a: { "2": 1, "10": 2 }, b: inOrder },
    JSON.parse('{"a":{"__proto__":1,"b":2},"b":[]}') as JsonValue,
  ];
  for (const value of values) {
    const before = JSON.stringify(value);
    assert.equal(canonicalText(value), (canonicalize as unknown as (value: JsonValue) => string)(value));
    assert.equal(JSON.stringify(value), before, "its argument is left alone");
  }
});

test("a toJSON method that is not data is not called", () => {
  const items = Object.assign([2, 1], { toJSON: () => "forged" });
  const object = Object.defineProperty({ a: 1 }, "toJSON", { value: () => "forged", enumerable: false });
  assert.equal(canonicalText([items, object] as unknown as JsonValue), '[[2,1],{"a":1}]');
});

test("a member is inserted at its position in canonical order, even if the others are unsorted", () => {
  assert.deepEqual(Object.keys(insertMember({ a: 1, z: 2 }, "seq", 3)), ["a", "seq", "z"]);
  assert.deepEqual(Object.keys(insertMember({ a: 1 }, "seq", 3)), ["a", "seq"]);
  assert.deepEqual(insertMember({ z: 1, a: 2, seq: 9 }, "seq", 3), { z: 1, a: 2, seq: 3 });
});
