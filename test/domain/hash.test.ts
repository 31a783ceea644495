import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  concatBytes,
  equalBytes,
  fromBase64,
  fromBase64Url,
  fromHex,
  sha256,
  sha256Hex,
  toBase64,
  toBase64Url,
  toHex,
  utf8,
} from "../../src/domain/hash.ts";
import { ROOT } from "../support/runtimes.ts";

const SAMPLES = Array.from({ length: 200 }, (_, length) => new Uint8Array(randomBytes(length)));
const told = (bytes: Uint8Array): string => `failing input: ${Buffer.from(bytes).toString("hex")}`;

test("digests equal node:crypto's at every length around the block size", () => {
  for (const bytes of SAMPLES) {
    const expected = createHash("sha256").update(bytes).digest("hex");
    assert.equal(toHex(sha256(bytes)), expected, told(bytes));
    assert.equal(sha256Hex(bytes), expected, told(bytes));
  }
});

test("a view into a larger buffer is hashed and encoded as the view, not the buffer", () => {
  const view = Uint8Array.from({ length: 100 }, (_, i) => i).subarray(10, 20);
  assert.equal(sha256Hex(view), createHash("sha256").update(view).digest("hex"));
  assert.equal(toHex(view), "0a0b0c0d0e0f10111213");
  assert.equal(toBase64(view), Buffer.from(view).toString("base64"));
});

test("hex and base64 equal Buffer's and can be decoded", () => {
  for (const bytes of [...SAMPLES, new Uint8Array(randomBytes(100_000))]) {
    const buffer = Buffer.from(bytes);
    assert.equal(toHex(bytes), buffer.toString("hex"));
    assert.equal(toBase64(bytes), buffer.toString("base64"));
    assert.equal(toBase64Url(bytes), buffer.toString("base64url"));
    assert.deepEqual(fromHex(toHex(bytes)), bytes);
    assert.deepEqual(fromBase64(toBase64(bytes)), bytes);
    assert.deepEqual(fromBase64Url(toBase64Url(bytes)), bytes);
  }
});

test("hex with anything but pairs of lowercase digits is rejected", () => {
  for (const text of ["0", "0g", "AB", "0x00", " 00", "00 ", "00\n", "０0", "+1", "1e+1"])
    assert.throws(() => fromHex(text), RangeError, JSON.stringify(text));
});

test("base64 has exactly one string for each value: padding, spare bits, alphabet and white space are strict", () => {
  for (const text of [
    "A",
    "AA",
    "AA=",
    "AAA",
    "AA===",
    "A===",
    "=",
    "====",
    "AAAA====",
    "=AAA",
    "A=AA",
    "AB==",
    "AAB=",
    "AA==AAAA",
    "-_==",
    "AA==\n",
    "AA\n==",
    " AA==",
    "AAé=",
    "AAA\u0000",
  ]) {
    assert.throws(() => fromBase64(text), RangeError, JSON.stringify(text));
  }
  for (const text of ["A", "AA==", "AAA=", "AAAAA", "AB", "AAB", "+/", "AA\n", " AA", "A-A_A"]) {
    assert.throws(() => fromBase64Url(text), RangeError, JSON.stringify(text));
  }
  assert.deepEqual(fromBase64(""), new Uint8Array(0));
  assert.deepEqual(fromBase64("+/+/"), Uint8Array.of(0xfb, 0xff, 0xbf));
  assert.deepEqual(fromBase64Url("-_-_"), Uint8Array.of(0xfb, 0xff, 0xbf));
});

test("of all two-character endings, exactly the canonical ones are read", () => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  let read = 0;
  for (const a of alphabet) {
    for (const b of alphabet) {
      try {
        fromBase64(`${a}${b}==`);
        read++;
      } catch (error) {
        assert.ok(error instanceof RangeError);
      }
    }
  }
  assert.equal(read, 256, "one text for each byte");
});

test("equality compares every byte and the length", () => {
  const bytes = SAMPLES[64] as Uint8Array;
  assert.equal(equalBytes(bytes, bytes.slice()), true);
  assert.equal(equalBytes(new Uint8Array(0), new Uint8Array(0)), true);
  assert.equal(equalBytes(bytes, bytes.subarray(0, 63)), false);
  assert.equal(equalBytes(bytes.subarray(0, 63), bytes), false);
  for (let bit = 0; bit < 512; bit++) {
    const other = bytes.slice();
    other[bit >> 3] = (other[bit >> 3] as number) ^ (1 << (bit & 7));
    assert.equal(equalBytes(bytes, other), false, `bit ${bit}`);
  }
});

test("bytes are concatenated, and text is encoded", () => {
  assert.deepEqual(concatBytes(), new Uint8Array(0));
  assert.deepEqual(concatBytes(Uint8Array.of(1), new Uint8Array(0), Uint8Array.of(2, 3)), Uint8Array.of(1, 2, 3));
  assert.equal(toHex(utf8("€😂\u0000")), "e282acf09f988200");
});

test("the file uses nothing of Node, so that it runs in a browser", () => {
  const source = readFileSync(`${ROOT}src/domain/hash.ts`, "utf8").replaceAll(/\/\*[\s\S]*?\*\//g, "");
  assert.doesNotMatch(source, /\bBuffer\b|\bprocess\b|\brequire\b|node:/);
});
