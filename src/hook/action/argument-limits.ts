/** Arguments as they are submitted: bound whole by digests where they are too long to be kept. */
import { createHash } from "node:crypto";
import { clipped, isObject, PayloadFault, type JsonObject } from "../payload.ts";

/** An action has at most 64 KiB, unless the service is told otherwise. */
const WHOLE = 48 * 1024;
/** Policies look at how these end. */
const KEPT = new Set(["cwd", "workspace", "path", "paths", "deletes", "reads", "writes", "urls", "hosts"]);

/** Throws PayloadFault when even the shortest form is too large. */
export function bounded(value: JsonObject): JsonObject {
  for (const longest of [16_384, 2_048, 256]) {
    const shortened = members(value, longest);
    if (Buffer.byteLength(JSON.stringify(shortened)) <= WHOLE) return shortened;
  }
  throw new PayloadFault("the arguments of the call are too large to be decided on");
}

function members(value: JsonObject, longest: number): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      if (KEPT.has(key)) return [key, each];
      return [key, key === "parsed" && isObject(each) ? reading(each, longest) : shorten(each, longest)];
    }),
  );
}

/** Of a command whose words are shortened nobody can tell by them what runs. */
function reading(parsed: JsonObject, longest: number): JsonObject {
  const commands = shorten(parsed["commands"], longest);
  if (JSON.stringify(commands) === JSON.stringify(parsed["commands"])) return parsed;
  const unclear = Array.isArray(parsed["unclear"]) ? parsed["unclear"].map(String) : [];
  return { ...parsed, commands, unclear: [...new Set([...unclear, "size"])].sort() };
}

function shorten(value: unknown, longest: number): unknown {
  if (typeof value === "string") {
    if (value.length <= longest) return value;
    const digest = createHash("sha256").update(value).digest("hex");
    return `${clipped(value, longest / 4)}… (${Buffer.byteLength(value)} bytes, SHA-256 ${digest})`;
  }
  if (Array.isArray(value)) return value.map((each) => shorten(each, longest));
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shorten(each, longest)]));
  return value;
}
