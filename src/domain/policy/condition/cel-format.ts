/**
 * `format` and `strings.quote` of the strings extension of cel-go. Source: cel-spec, doc/extensions/strings.md. Numbers
 * are written exactly and rounded half to even, as in Go, because the functions of JavaScript round halves up and write
 * large numbers with an exponent.
 */
import { celFunc, celMethod, CelScalar, isCelMap, isCelType, isCelUint, listType, type CelList } from "@bufbuild/cel";
import { isReflectMessage } from "@bufbuild/protobuf/reflect";
import { toHex, utf8 } from "../../hash.ts";
import { textOfBytes } from "./cel-conversions.ts";
import { comparePoints } from "./cel-lists.ts";
import { chargeSteps } from "./cel-meter.ts";
import { isList } from "./cel-values.ts";

const { DYN, STRING } = CelScalar;

/** Maximum number of digits after the point. */
const MAX_PRECISION = 100;
const DEFAULT_PRECISION = 6;

/** A placeholder of a format, such as `%.2f`. */
export interface FormatClause {
  readonly verb: "s" | "d" | "f" | "e" | "b" | "x" | "X" | "o";
  readonly precision: number;
}

/**
 * Returns the constant strings and the placeholders of a format, in order. Throws for an unknown placeholder.
 * @example parseFormat("%.1f %%") // [{ verb: "f", precision: 1 }, " %"]
 */
export function parseFormat(format: string): (string | FormatClause)[] {
  const parts: (string | FormatClause)[] = [];
  let text = "";
  for (let i = 0; i < format.length; i++) {
    if (format[i] !== "%") text += format[i];
    else if (format[i + 1] === "%") {
      text += "%";
      i++;
    } else {
      const [clause, digits, verb] = /^%(?:\.([0-9]{1,3}))?([sdfebxXo])/.exec(format.slice(i, i + 6)) ?? [];
      const precision = digits === undefined ? DEFAULT_PRECISION : Number(digits);
      if (clause === undefined || precision > MAX_PRECISION)
        throw new Error(
          `there is no placeholder "${format.slice(i, i + 6)}"; write %s, %d, %f, %e, %b, %x, %X or %o, with at most ${MAX_PRECISION} digits such as %.2f, or %% for a percent sign`,
        );
      if (text !== "") parts.push(text);
      text = "";
      parts.push({ verb: verb as FormatClause["verb"], precision });
      i += clause.length - 1;
    }
  }
  return text === "" ? parts : [...parts, text];
}

function format(this: string, list: CelList): string {
  chargeSteps(1 + (this.length >> 2) + list.size);
  let next = 0;
  const texts = parseFormat(this).map((part) => {
    if (typeof part === "string") return part;
    if (next >= list.size) throw new Error("there are fewer values than placeholders");
    const text = formatValue(part, list.get(next++));
    chargeSteps(1 + (text.length >> 3));
    return text;
  });
  return texts.join("");
}

function formatValue({ verb, precision }: FormatClause, value: unknown): string {
  if (verb === "s") return toText(value);
  const number = isCelUint(value) ? value.value : value;
  switch (verb) {
    case "d":
      return typeof number === "bigint" ? String(number) : decimalText(toDouble(number));
    case "f":
      return specialText(toDouble(number)) ?? fixedText(toDouble(number), precision);
    case "e":
      return specialText(toDouble(number)) ?? scientificText(toDouble(number), precision);
    case "b":
      return typeof number === "boolean" ? String(Number(number)) : toInteger(number).toString(2);
    case "o":
      return toInteger(number).toString(8);
    default: {
      const text = typeof number === "bigint" ? number.toString(16) : hexOfBytes(number);
      return verb === "X" ? text.toUpperCase() : text;
    }
  }
}

function toDouble(value: unknown): number {
  if (typeof value !== "number" && typeof value !== "bigint") throw new Error("the value is not a number");
  return Number(value);
}

function toInteger(value: unknown): bigint {
  if (typeof value !== "bigint") throw new Error("the value is not an integer");
  return value;
}

function hexOfBytes(value: unknown): string {
  const bytes = typeof value === "string" ? utf8(value) : value;
  if (!(bytes instanceof Uint8Array)) throw new Error("the value has no hexadecimal form");
  chargeSteps(bytes.length >> 1);
  return toHex(bytes);
}

/** Returns the text of `%s`. Charges for the elements that it visits. */
function toText(value: unknown): string {
  chargeSteps(1);
  if (typeof value === "string") return value;
  if (typeof value === "number") return decimalText(value);
  if (value === null || typeof value === "bigint" || typeof value === "boolean") return String(value);
  if (isCelUint(value)) return String(value.value);
  if (value instanceof Uint8Array) return textOfBytes(value);
  if (isReflectMessage(value)) return timeText(value.desc.typeName, value.message as unknown as Moment);
  if (isList(value)) return chargeText(`[${[...value].map(toText).join(", ")}]`);
  if (isCelMap(value)) {
    const entries = [...value].map(([key, item]) => {
      const text = toText(key);
      chargeSteps(text.length >> 3);
      return { points: Array.from(text, codePoint), text: `${text}: ${toText(item)}` };
    });
    entries.sort((a, b) => comparePoints(a.points, b.points));
    return chargeText(`{${entries.map(({ text }) => text).join(", ")}}`);
  }
  if (typeof value === "object" && isCelType(value)) return value.name;
  throw new Error("the value has no text");
}

function chargeText(text: string): string {
  chargeSteps(text.length >> 3);
  return text;
}

const codePoint = (character: string): number => character.codePointAt(0) as number;

interface Moment {
  seconds: bigint;
  nanos: number;
}

/** Returns a timestamp in RFC 3339 with the digits that it needs, or the seconds of a duration. */
function timeText(typeName: string, { seconds, nanos }: Moment): string {
  if (typeName !== "google.protobuf.Timestamp") return `${decimalText(Number(seconds) + nanos / 1e9)}s`;
  const [whole] = new Date(Number(seconds) * 1000).toISOString().split(".");
  const fraction = nanos === 0 ? "" : `.${String(nanos).padStart(9, "0").replace(/0+$/, "")}`;
  return `${whole}${fraction}Z`;
}

/** Returns the text of NaN and of an infinite number; null for other numbers. */
function specialText(value: number): string | null {
  return Number.isFinite(value) ? null : String(value);
}

/** Returns the shortest text that identifies the number, without an exponent. */
function decimalText(value: number): string {
  const special = specialText(value);
  if (special !== null) return special;
  const [mantissa = "", exponent = "0"] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const point = Number(exponent) + 1;
  const sign = signOf(value);
  if (point <= 0) return `${sign}${value === 0 ? "0" : `0.${"0".repeat(-point)}${digits}`}`;
  const whole = digits.slice(0, point).padEnd(point, "0");
  return digits.length > point ? `${sign}${whole}.${digits.slice(point)}` : `${sign}${whole}`;
}

const bits = new DataView(new ArrayBuffer(8));

/** Returns the absolute value of a finite number, multiplied by 10^`power`, rounded half to even. */
function scaleToInteger(value: number, power: number): bigint {
  bits.setFloat64(0, Math.abs(value));
  const raw = bits.getBigUint64(0);
  const biased = Number(raw >> 52n);
  const fraction = raw & ((1n << 52n) - 1n);
  const mantissa = biased === 0 ? fraction : fraction | (1n << 52n);
  const exponent = BigInt(Math.max(biased, 1) - 1075);
  const ten = 10n ** BigInt(Math.abs(power));
  const numerator = (power > 0 ? mantissa * ten : mantissa) << (exponent > 0n ? exponent : 0n);
  const denominator = (power < 0 ? ten : 1n) << (exponent < 0n ? -exponent : 0n);
  const [quotient, twice] = [numerator / denominator, (numerator % denominator) * 2n];
  const isUp = twice > denominator || (twice === denominator && quotient % 2n === 1n);
  return isUp ? quotient + 1n : quotient;
}

const signOf = (value: number): string => (value < 0 || Object.is(value, -0) ? "-" : "");

/** Returns the digits with a point in front of the last `precision` digits. */
function withPoint(digits: bigint, precision: number): string {
  const text = String(digits).padStart(precision + 1, "0");
  const whole = text.slice(0, text.length - precision);
  return precision === 0 ? whole : `${whole}.${text.slice(text.length - precision)}`;
}

function fixedText(value: number, precision: number): string {
  chargeSteps(40);
  return `${signOf(value)}${withPoint(scaleToInteger(value, precision), precision)}`;
}

function scientificText(value: number, precision: number): string {
  chargeSteps(40);
  // With 20 digits, rounding never changes the exponent of a double.
  let exponent = Number(Math.abs(value).toExponential(20).split("e")[1]);
  let digits = scaleToInteger(value, precision - exponent);
  if (digits >= 10n ** BigInt(precision + 1)) {
    digits /= 10n;
    exponent++;
  }
  const sign = exponent < 0 ? "-" : "+";
  return `${signOf(value)}${withPoint(digits, precision)}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

function quote(text: string): string {
  chargeSteps(1 + (text.length >> 2));
  return `"${text.replace(/["\\]|\p{Cc}/gu, (character) => ESCAPES[character] ?? character)}"`;
}

export const FORMAT_FUNCTIONS: readonly unknown[] = [
  celMethod("format", STRING, [listType(DYN)], STRING, format as never),
  celFunc("strings.quote", [STRING], STRING, quote),
];
