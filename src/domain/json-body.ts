/** Parses the bodies of requests that a facade, or the egress proxy, reads itself. */
import { decodeUtf8, isJsonObject, parseJson, type JsonLimits, type JsonObject, type JsonValue } from "./json.ts";

/**
 * Thrown for a request that a facade cannot read, or that programs could interpret in different ways. The service makes
 * no decision on such a request.
 */
export class UnreadableRequest extends Error {}

/** Maximum number of values in a body that a facade parses. Lower than the default for the service's own routes. */
const MAX_VALUES = 10_000;

/**
 * Parses a JSON body. Throws UnreadableRequest.
 * @param limits instead of the limits for an action
 */
export function readJson(bytes: Uint8Array, limits: JsonLimits = { maxValues: MAX_VALUES }): JsonValue {
  const text = decodeUtf8(bytes);
  if (text === null) throw new UnreadableRequest("the body is not UTF-8");
  try {
    return parseJson(text, limits);
  } catch (error) {
    throw new UnreadableRequest(error instanceof Error ? error.message : "the body is not JSON");
  }
}

/** Parses a body that must be a JSON object, as `readJson` does. Throws UnreadableRequest. */
export function readJsonObject(bytes: Uint8Array, limits?: JsonLimits): JsonObject {
  const body = readJson(bytes, limits);
  if (!isJsonObject(body)) throw new UnreadableRequest("the body is not a JSON object");
  return body;
}
