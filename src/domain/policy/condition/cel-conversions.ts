/**
 * Type conversions as the CEL specification defines them ("Standard Definitions"), with number syntax as in cel-go. A
 * string that is not entirely a number, time or duration is an error. The library's own conversions are replaced
 * because they accept "", " 5 " and "0x10" as numbers, turn "5,000" into NaN, count timestamps in milliseconds, and
 * accept invalid dates on some engines.
 */
import { celFunc, CelScalar, celUint } from "@bufbuild/cel";
import { keepsValue } from "../../json.ts";
import { parseRfc3339 } from "../../time.ts";
import type { CelFunction } from "./cel-meter.ts";
import { createDuration, createTimestamp, DURATION, TIMESTAMP } from "./cel-time.ts";

const { BYTES, DOUBLE, INT, STRING, UINT } = CelScalar;

export const MIN_INT = -(2n ** 63n);
export const MAX_INT = 2n ** 63n - 1n;
export const MAX_UINT = 2n ** 64n - 1n;

function failConversion(): never {
  throw new Error("the text is not one");
}

function toInt(text: string): bigint {
  const value = /^[+-]?[0-9]+$/.test(text) ? BigInt(text.replace("+", "")) : failConversion();
  return value >= MIN_INT && value <= MAX_INT ? value : failConversion();
}

function toUint(text: string): ReturnType<typeof celUint> {
  const value = /^[0-9]+$/.test(text) ? BigInt(text) : failConversion();
  return value <= MAX_UINT ? celUint(value) : failConversion();
}

const SPECIAL = /^([+-]?)(?:(nan)|inf|infinity)$/i;

function toDouble(text: string): number {
  if (/^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/.test(text)) {
    return keepsValue(text) ? Number(text) : failConversion();
  }
  const [, sign, nan] = SPECIAL.exec(text) ?? failConversion();
  if (nan !== undefined) return sign === "" ? Number.NaN : failConversion();
  return sign === "-" ? -Infinity : Infinity;
}

const RFC3339 = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/;

function toTimestamp(text: string) {
  const [, whole, fraction = "", zone] = RFC3339.exec(text) ?? failConversion();
  const ms = parseRfc3339(`${whole}${zone}`) ?? failConversion();
  return createTimestamp(BigInt(ms / 1000), Number(fraction.padEnd(9, "0")));
}

const SECOND = 1_000_000_000n;
const NANOS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  "\u00b5s": 1_000n,
  "\u03bcs": 1_000n,
  ms: 1_000_000n,
  s: SECOND,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const PART = "(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h)";
const SPAN = new RegExp(`^([+-]?)(0|(?:${PART})+)$`);
const PARTS = /([0-9]*)\.?([0-9]*)([a-z\u00b5\u03bc]+)/g;

function toDuration(text: string) {
  const [, sign, parts] = SPAN.exec(text) ?? failConversion();
  let nanos = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of (parts as string).matchAll(PARTS)) {
    const factor = NANOS[unit] as bigint;
    nanos += BigInt(whole) * factor + (BigInt(fraction) * factor) / 10n ** BigInt(fraction.length);
  }
  if (sign === "-") nanos = -nanos;
  return createDuration(nanos);
}

// Do not remove a byte order mark, which is a character like any other.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decodes UTF-8. Throws if it is invalid. */
export const textOfBytes = (bytes: Uint8Array): string => decoder.decode(bytes);

export const CONVERSION_FUNCTIONS = [
  celFunc("int", [STRING], INT, toInt),
  celFunc("uint", [STRING], UINT, toUint),
  celFunc("double", [STRING], DOUBLE, toDouble),
  celFunc("timestamp", [STRING], TIMESTAMP, toTimestamp as never),
  celFunc("timestamp", [INT], TIMESTAMP, (seconds) => createTimestamp(seconds) as never),
  celFunc("duration", [STRING], DURATION, toDuration as never),
  celFunc("string", [BYTES], STRING, textOfBytes),
] as unknown as CelFunction[];

/** Conversions to remove from the library, because CEL does not define them. */
export const REMOVED_CONVERSIONS = ["int(google.protobuf.Duration)", "duration(int)"];
