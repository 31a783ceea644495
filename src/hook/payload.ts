/** What a host sent, read with care: its shape is nobody's promise. */
import { checkJson, JsonFault, type JsonFaultCode, type JsonLimits } from "../domain/json.ts";

export type JsonObject = Record<string, unknown>;

/** Bytes of one payload. */
export const MAX_PAYLOAD_BYTES = 4 * 1024 * 1024;

/** A payload that is not understood: the reason is said to the agent, and holds nothing of what was sent. */
export class PayloadError extends Error {}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface Payload {
  text: string;
  /** As JSON.parse has it: who is answered, and in which words, is told by it alone; what is decided, after `refuseAmbiguous`. */
  value: JsonObject;
}

/** One JSON object, with or without a byte order mark in front. Throws PayloadFault. */
export function readPayload(bytes: Uint8Array): Payload {
  if (bytes.length > MAX_PAYLOAD_BYTES) throw new PayloadError("the call is larger than 4 MiB");
  let text: string;
  let value: unknown;
  try {
    // The decoder takes a byte order mark away, and refuses what is not UTF-8.
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    throw new PayloadError("what the host sent is no JSON");
  }
  if (!isObject(value)) throw new PayloadError("what the host sent is no JSON object");
  return { text, value };
}

/** Longer ones of a payload that is too large say not what it is about. Bytes. */
const LARGE_VALUE_BYTES = 65_536;

/** A payload with null in the place of each large value of its members: what tells which event it is, and whose. */
export function dropLargeValues(bytes: Uint8Array): Uint8Array {
  const kept: Uint8Array[] = [];
  let [depth, from, value, inText] = [0, 0, 0, false];
  for (let i = 0; i < bytes.length; i++) {
    const c = bytes[i];
    if (inText) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inText = false;
    } else if (c === 0x22) inText = true;
    else if (c === 0x7b || c === 0x5b) depth++;
    else if (c === 0x3a && depth === 1) value = i + 1;
    else if (c === 0x2c || c === 0x7d || c === 0x5d) {
      if (depth === 1 && value > 0 && i - value > LARGE_VALUE_BYTES) {
        kept.push(bytes.subarray(from, value), Buffer.from("null"));
        from = i;
      }
      if (depth === 1) value = 0;
      if (c !== 0x2c) depth--;
    }
  }
  return Buffer.concat([...kept, bytes.subarray(from)]);
}

/** Where hosts have the arguments of a call. */
export const INPUT_MEMBERS = ["tool_input", "toolArgs", "toolInput", "args"] as const;

const DECIDED_MEMBERS = new Set<string>([...INPUT_MEMBERS, "command", "cwd", "file_path"]);

const AMBIGUITY_REASONS: Partial<Record<JsonFaultCode, string>> = {
  DUPLICATE_KEY: "names a member twice",
  LONE_SURROGATE: "holds half of a surrogate pair",
  UNSAFE_INTEGER: "holds a number that is not exact",
};

/**
 * A host may read the text otherwise than JSON.parse: run the first of two members, or all digits of a number. What a tool
 * has answered, and what else the host tells, may hold any number, for nobody decides on it.
 * @param isAsked whether the event is one that `asks`: of the others it only has to be clear that they are
 * @throws PayloadFault
 */
export function rejectAmbiguousJson(text: string, isAsked: boolean): void {
  checkExactJson(text, (code, member, depth) =>
    code === "DUPLICATE_KEY" ? !isAsked && depth > 1 : !isAsked || !DECIDED_MEMBERS.has(member),
  );
}

/** The arguments of a call, where a host hands them over as text. Throws PayloadFault. */
export function readArguments(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new PayloadError("the arguments of the call are no JSON");
  }
  checkExactJson(text, () => false);
  return value;
}

function checkExactJson(text: string, isHarmless: Required<JsonLimits>["isHarmless"]): void {
  try {
    // How deep it may be the service says.
    checkJson(text, { maxDepth: Infinity, isHarmless });
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    throw new PayloadError(`the call ${AMBIGUITY_REASONS[error.code] ?? "cannot be read in one way alone"}`);
  }
}

export function firstText(object: JsonObject, ...names: string[]): string | undefined {
  for (const name of names) {
    const value = object[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}

/** The beginning of a text, where it is only shown: the service takes no half of a surrogate pair. */
export function truncate(text: string, length: number): string {
  return text.slice(0, length).replace(/\p{Surrogate}/gu, "\ufffd");
}
