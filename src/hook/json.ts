/** What a host sent, read with care: its shape is nobody's promise. */

export type JsonObject = Record<string, unknown>;

/** Bytes of one payload. */
export const LARGEST_PAYLOAD = 4 * 1024 * 1024;

/** A payload that is not understood: the reason is said to the agent, and holds nothing of what was sent. */
export class PayloadFault extends Error {}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One JSON object, with or without a byte order mark in front. Throws PayloadFault. */
export function readPayload(bytes: Uint8Array): JsonObject {
  if (bytes.length > LARGEST_PAYLOAD) throw new PayloadFault("the call is larger than 4 MiB");
  let value: unknown;
  try {
    // The decoder takes a byte order mark away, and refuses what is not UTF-8.
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new PayloadFault("what the host sent is no JSON");
  }
  if (!isObject(value)) throw new PayloadFault("what the host sent is no JSON object");
  return value;
}

export function textOf(object: JsonObject, ...names: string[]): string | undefined {
  for (const name of names) {
    const value = object[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}
