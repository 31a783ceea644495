/**
 * Shortens long arguments before they are submitted. A shortened value contains a SHA-256 digest of the whole value, so
 * that an approval still covers the whole value.
 */
import { createHash } from "node:crypto";
import { truncate, isObject, PayloadError, type JsonObject } from "../payload.ts";

/** Less than the service's default limit for an action (64 KiB), to leave room for the action's other members. */
const MAX_ARGUMENT_BYTES = 48 * 1024;
/** Members whose values are never shortened, because policies match their ends. */
const NEVER_SHORTENED = new Set(["cwd", "workspace", "path", "paths", "deletes", "reads", "writes", "urls", "hosts"]);

/**
 * Shortens strings longer than 16,384 characters. If the arguments are still too large, shortens more strings. Throws
 * PayloadError if the shortest form is still too large.
 */
export function limitArguments(value: JsonObject): JsonObject {
  for (const maxLength of [16_384, 2_048, 256]) {
    const shortened = shortenMembers(value, maxLength);
    if (Buffer.byteLength(JSON.stringify(shortened)) <= MAX_ARGUMENT_BYTES) return shortened;
  }
  throw new PayloadError("the arguments of the call are too large to be decided");
}

function shortenMembers(value: JsonObject, maxLength: number): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      if (NEVER_SHORTENED.has(key)) return [key, each];
      return [key, key === "parsed" && isObject(each) ? shortenParsedShell(each, maxLength) : shorten(each, maxLength)];
    }),
  );
}

/**
 * Shortens the words of a parsed command, and marks the command as unclear because its words no longer show what
 * runs.
 */
function shortenParsedShell(parsed: JsonObject, maxLength: number): JsonObject {
  const commands = shorten(parsed["commands"], maxLength);
  if (JSON.stringify(commands) === JSON.stringify(parsed["commands"])) return parsed;
  const unclear = Array.isArray(parsed["unclear"]) ? parsed["unclear"].map(String) : [];
  return { ...parsed, commands, unclear: [...new Set([...unclear, "size"])].sort() };
}

function shorten(value: unknown, maxLength: number): unknown {
  if (typeof value === "string") {
    if (value.length <= maxLength) return value;
    const digest = createHash("sha256").update(value).digest("hex");
    return `${truncate(value, maxLength / 4)}… (${Buffer.byteLength(value)} bytes, SHA-256 ${digest})`;
  }
  if (Array.isArray(value)) return value.map((each) => shorten(each, maxLength));
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shorten(each, maxLength)]));
  return value;
}
