/** Arguments as they are submitted: bound whole by digests where they are too long to be kept. */
import { createHash } from "node:crypto";
import { isObject, PayloadFault, type JsonObject } from "./json.ts";

/** An action has at most 64 KiB, unless the service is told otherwise. */
const WHOLE = 48 * 1024;

/** Throws PayloadFault when even the shortest form is too large. */
export function bounded(value: JsonObject): JsonObject {
  for (const longest of [16_384, 2_048, 256]) {
    const shortened = shorten(value, longest) as JsonObject;
    if (Buffer.byteLength(JSON.stringify(shortened)) <= WHOLE) return shortened;
  }
  throw new PayloadFault("the arguments of the call are too large to be decided on");
}

function shorten(value: unknown, longest: number): unknown {
  if (typeof value === "string") {
    if (value.length <= longest) return value;
    const digest = createHash("sha256").update(value).digest("hex");
    return `${value.slice(0, longest / 4)}… (${Buffer.byteLength(value)} bytes, SHA-256 ${digest})`;
  }
  if (Array.isArray(value)) return value.map((each) => shorten(each, longest));
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shorten(each, longest)]));
  return value;
}
