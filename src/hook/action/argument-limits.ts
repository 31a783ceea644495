/** Arguments as they are submitted: bound whole by digests where they are too long to be kept. */
import { createHash } from "node:crypto";
import { truncate, isObject, PayloadError, type JsonObject } from "../payload.ts";

/** An action has at most 64 KiB, unless the service is told otherwise. */
const MAX_ARGUMENT_BYTES = 48 * 1024;
/** Policies look at how these end. */
const NEVER_SHORTENED = new Set(["cwd", "workspace", "path", "paths", "deletes", "reads", "writes", "urls", "hosts"]);

/** Throws PayloadFault when even the shortest form is too large. */
export function limitArguments(value: JsonObject): JsonObject {
  for (const maxLength of [16_384, 2_048, 256]) {
    const shortened = shortenMembers(value, maxLength);
    if (Buffer.byteLength(JSON.stringify(shortened)) <= MAX_ARGUMENT_BYTES) return shortened;
  }
  throw new PayloadError("the arguments of the call are too large to be decided on");
}

function shortenMembers(value: JsonObject, longest: number): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      if (NEVER_SHORTENED.has(key)) return [key, each];
      return [key, key === "parsed" && isObject(each) ? shortenParsedShell(each, longest) : shorten(each, longest)];
    }),
  );
}

/** Of a command whose words are shortened nobody can tell by them what runs. */
function shortenParsedShell(parsed: JsonObject, longest: number): JsonObject {
  const commands = shorten(parsed["commands"], longest);
  if (JSON.stringify(commands) === JSON.stringify(parsed["commands"])) return parsed;
  const unclear = Array.isArray(parsed["unclear"]) ? parsed["unclear"].map(String) : [];
  return { ...parsed, commands, unclear: [...new Set([...unclear, "size"])].sort() };
}

function shorten(value: unknown, longest: number): unknown {
  if (typeof value === "string") {
    if (value.length <= longest) return value;
    const digest = createHash("sha256").update(value).digest("hex");
    return `${truncate(value, longest / 4)}… (${Buffer.byteLength(value)} bytes, SHA-256 ${digest})`;
  }
  if (Array.isArray(value)) return value.map((each) => shorten(each, longest));
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shorten(each, longest)]));
  return value;
}
