/** Parses the bodies that a facade reads itself. */
import { decodeUtf8, isJsonObject, parseJson, type JsonObject, type JsonValue } from "../../domain/json.ts";

/** Thrown for a request that can be interpreted in different ways, so that no decision is made. */
export class UnreadableRequest extends Error {}

/** Maximum number of values, the default of the service's own routes. */
const MAX_VALUES = 10_000;

/** Throws UnreadableRequest. */
export function readJson(bytes: Uint8Array): JsonValue {
  const text = decodeUtf8(bytes);
  if (text === null) throw new UnreadableRequest("the body is not UTF-8");
  try {
    return parseJson(text, { maxValues: MAX_VALUES });
  } catch (error) {
    throw new UnreadableRequest(error instanceof Error ? error.message : "the body is not JSON");
  }
}

/** Throws UnreadableRequest. */
export function readJsonObject(bytes: Uint8Array): JsonObject {
  const body = readJson(bytes);
  if (!isJsonObject(body)) throw new UnreadableRequest("the body is not a JSON object");
  return body;
}
