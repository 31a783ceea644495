/** Parses payloads of hosts defensively, because hosts change their format without notice. */
import { checkJson, JsonFault, type JsonFaultCode, type JsonLimits } from "../../src/domain/json.ts";

export type JsonObject = Record<string, unknown>;

/** Maximum size of a payload. Bytes. */
export const MAX_PAYLOAD_BYTES = 4 * 1024 * 1024;

/**
 * Thrown if a call cannot be decided, for example because its payload is malformed. The agent sees the message, so it
 * contains no part of the payload.
 */
export class PayloadError extends Error {}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

interface Payload {
  text: string;
  /**
   * Result of JSON.parse. Until `rejectAmbiguousJson` has accepted the text, use it only to choose the answer's format.
   */
  value: JsonObject;
}

/** Parses one JSON object, with or without a byte order mark. Throws PayloadError. */
export function readPayload(bytes: Uint8Array): Payload {
  if (bytes.length > MAX_PAYLOAD_BYTES) throw new PayloadError("the call is larger than 4 MiB");
  let text: string;
  let value: unknown;
  try {
    // The decoder removes a byte order mark and rejects invalid UTF-8.
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    throw new PayloadError("the host's payload is not valid JSON");
  }
  if (!isObject(value)) throw new PayloadError("the host's payload is not a JSON object");
  return { text, value };
}

/** Maximum size of a value that can identify the event or the host. Bytes. */
const LARGE_VALUE_BYTES = 65_536;

/** Replaces each large top-level value with null. The event and the host can still be recognized. */
export function dropLargeValues(bytes: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  let [depth, partStart, value, inString] = [0, 0, 0, false];
  for (let i = 0; i < bytes.length; i++) {
    const c = bytes[i];
    if (inString) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inString = false;
    } else if (c === 0x22) inString = true;
    else if (c === 0x7b || c === 0x5b) depth++;
    else if (c === 0x3a && depth === 1) value = i + 1;
    else if (c === 0x2c || c === 0x7d || c === 0x5d) {
      if (depth === 1 && value > 0 && i - value > LARGE_VALUE_BYTES) {
        parts.push(bytes.subarray(partStart, value), Buffer.from("null"));
        partStart = i;
      }
      if (depth === 1) value = 0;
      if (c !== 0x2c) depth--;
    }
  }
  return Buffer.concat([...parts, bytes.subarray(partStart)]);
}

/** Names of the member that contains a call's arguments. They differ between hosts. */
export const INPUT_MEMBERS = ["tool_input", "toolArgs", "toolInput", "args"] as const;

const DECIDED_MEMBERS = new Set<string>([...INPUT_MEMBERS, "command", "cwd", "file_path"]);

const AMBIGUITY_REASONS: Partial<Record<JsonFaultCode, string>> = {
  DUPLICATE_KEY: "has a duplicate member",
  LONE_SURROGATE: "contains half of a surrogate pair",
  UNSAFE_INTEGER: "contains a number that is not exact",
};

/**
 * Rejects JSON that the host may parse differently from JSON.parse, because of duplicate members, inexact numbers or
 * lone surrogates. Does not check numbers and strings in members that cannot influence the decision, such as a tool's
 * output.
 * @param mustDecide whether the event needs a decision; for other events, only top-level members must be unique
 * @throws PayloadError
 */
export function rejectAmbiguousJson(text: string, mustDecide: boolean): void {
  checkExactJson(text, (code, member, depth) =>
    code === "DUPLICATE_KEY" ? !mustDecide && depth > 1 : !mustDecide || !DECIDED_MEMBERS.has(member),
  );
}

/** Parses arguments that a host sends as a JSON string. Throws PayloadError. */
export function readArguments(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new PayloadError("the arguments of the call are not valid JSON");
  }
  checkExactJson(text, () => false);
  return value;
}

function checkExactJson(text: string, isHarmless: Required<JsonLimits>["isHarmless"]): void {
  try {
    // Do not limit the depth here, because the service does.
    checkJson(text, { maxDepth: Infinity, isHarmless });
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    throw new PayloadError(`the call ${AMBIGUITY_REASONS[error.code] ?? "is ambiguous JSON"}`);
  }
}

export function firstNonEmptyString(object: JsonObject, ...names: string[]): string | undefined {
  for (const name of names) {
    const value = object[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}

/** Shortens a string for display. Replaces lone surrogates, because the service rejects them. */
export function truncate(text: string, length: number): string {
  return text.slice(0, length).replace(/\p{Surrogate}/gu, "\ufffd");
}
