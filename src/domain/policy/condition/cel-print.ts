/** Prints CEL values as short text for people. */
import { isCelMap, isCelType, isCelUint } from "@bufbuild/cel";
import { clipText } from "../../text.ts";
import { toRfc3339 } from "../../time.ts";
import { CelCidr, CelIp, CelOptional, isList } from "./cel-values.ts";

const MAX_TEXT = 200;
const MAX_ITEMS = 20;
const MAX_DEPTH = 4;

/** Prints a value, clipped to 200 characters and an ellipsis. */
export function printCelValue(value: unknown): string {
  return clipText(print(value, 0), MAX_TEXT);
}

function print(value: unknown, depth: number): string {
  // The result is clipped later.
  if (typeof value === "string") return JSON.stringify(value.slice(0, MAX_TEXT));
  if (typeof value === "number") return Number.isInteger(value) ? value.toFixed(1) : String(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (isCelUint(value)) return `${value.value}u`;
  if (value instanceof CelOptional)
    return value.value === undefined ? "optional.none()" : `optional.of(${print(value.value, depth)})`;
  if (value instanceof CelIp) return `ip("${value.text}")`;
  if (value instanceof CelCidr) return `cidr("${value.text}")`;
  if (isCelType(value)) return value.name;
  if (isList(value))
    return printItems(
      [...value].map((item) => () => print(item, depth + 1)),
      "[",
      "]",
      depth,
    );
  if (isCelMap(value))
    return printItems(
      [...value].map(
        ([key, item]) =>
          () =>
            `${print(key, depth + 1)}: ${print(item, depth + 1)}`,
      ),
      "{",
      "}",
      depth,
    );
  const { seconds, nanos = 0 } = ((value as { message?: unknown }).message ?? {}) as {
    seconds?: bigint;
    nanos?: number;
  };
  if (seconds === undefined) return "a message";
  const kind = (value as { desc?: { typeName?: string } }).desc?.typeName;
  return kind === "google.protobuf.Timestamp"
    ? toRfc3339(Number(seconds) * 1000 + Math.floor(nanos / 1e6))
    : `${Number(seconds) + nanos / 1e9}s`;
}

function printItems(items: (() => string)[], open: string, close: string, depth: number): string {
  if (items.length > 0 && depth >= MAX_DEPTH) return `${open}…${close}`;
  const printedItems = items.slice(0, MAX_ITEMS).map((item) => item());
  return `${open}${[...printedItems, ...(items.length > MAX_ITEMS ? ["…"] : [])].join(", ")}${close}`;
}

/** Returns the items over which a comprehension iterates: the items of a list, or the keys of a map. */
export function listIterationItems(range: unknown): unknown[] {
  if (isList(range)) return [...range];
  return isCelMap(range) ? [...range.keys()] : [];
}
