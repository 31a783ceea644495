/** Bodies that a facade reads itself, as its protocol has them. */
import { decodeUtf8, isJsonObject, parseJson, type JsonObject, type JsonValue } from "../../domain/json.ts";

/** What was sent cannot be read in one way alone, so nothing is decided. The message says why. */
export class UnreadableRequest extends Error {}

/** As many as the service's own routes take. */
const MAX_VALUES = 10_000;

/** Throws Unreadable. */
export function readJson(bytes: Uint8Array): JsonValue {
  const text = decodeUtf8(bytes);
  if (text === null) throw new UnreadableRequest("the body is not UTF-8");
  try {
    return parseJson(text, { maxValues: MAX_VALUES });
  } catch (error) {
    throw new UnreadableRequest(error instanceof Error ? error.message : "the body is not JSON");
  }
}

/** Throws Unreadable. */
export function readJsonObject(bytes: Uint8Array): JsonObject {
  const body = readJson(bytes);
  if (!isJsonObject(body)) throw new UnreadableRequest("the body is not a JSON object");
  return body;
}
