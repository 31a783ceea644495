/** Selects the claims of a verified token that conditions can read and that are recorded. */
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/core.ts";
import { actsForUser, type IssuerOptions } from "./issuer-options.ts";

const MAX_LENGTH = 500;
const MAX_ITEMS = 32;

/**
 * Returns the named claims, with the issuer's id and the subject. Omits claims that the token does not have.
 * Throws RangeError for a value that cannot be recorded.
 */
export function selectNamedClaims({ id, platform, claims }: IssuerOptions, payload: JsonObject): JsonObject {
  const named: JsonObject = { issuer: id, subject: payload["sub"] as string };
  if (actsForUser(platform)) named["client_id"] = payload["client_id"] as string;
  for (const [name, path] of Object.entries(claims)) {
    const value = valueAt(payload, typeof path === "string" ? [path] : path);
    if (value === undefined) continue;
    if (!isRecordable(value))
      throw new RangeError(
        `the claim "${name}" must be a string of at most ${MAX_LENGTH} characters, a whole number, true or false, or a list of at most ${MAX_ITEMS} such strings`,
      );
    named[name] = value;
  }
  return named;
}

function valueAt(payload: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = payload;
  for (const name of path) value = isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return value;
}

const isText = (value: JsonValue): boolean => typeof value === "string" && value.length <= MAX_LENGTH;

function isRecordable(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length <= MAX_ITEMS && value.every(isText);
  return isText(value) || typeof value === "boolean" || Number.isSafeInteger(value);
}
