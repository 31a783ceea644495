/**
 * Inserts the parameters of an action into a session policy, so that the session can reach only the resources in the
 * action's parameters.
 */
import type { JsonObject, JsonValue } from "../../src/core.ts";

const PLACEHOLDER = /\{params\.([A-Za-z0-9_]+)\}/g;
/**
 * Allowed characters of a parameter value. With wildcards, policy variables or quotes, a value could select other
 * resources; with `/` or `..`, another folder.
 */
const PLAIN_VALUE = /^[A-Za-z0-9][A-Za-z0-9._@=-]{0,255}$/;
/** Maximum length of a session policy in STS, in characters. */
const MAX_POLICY = 2048;

/** Returns the fault of a configured policy; null if it has none. */
export function findPolicyFault(policy: Readonly<Record<string, unknown>>): string | null {
  if (!Array.isArray(policy["Statement"])) return "needs a list `Statement`";
  const text = JSON.stringify(policy);
  if (text.length > MAX_POLICY) return `is longer than ${MAX_POLICY} characters, the limit of STS`;
  if (hasPlaceholderKey(policy as JsonObject))
    return "has a placeholder in the name of a member; placeholders are for values";
  const other = text.replaceAll(PLACEHOLDER, "").match(/\{params[^}]*\}?/);
  return other === null ? null : `has the placeholder ${other[0]}; write {params.name}`;
}

function hasPlaceholderKey(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.some(hasPlaceholderKey);
  if (value === null || typeof value !== "object") return false;
  return Object.entries(value).some(([key, item]) => key.includes("{params") || hasPlaceholderKey(item));
}

/**
 * Returns the policy as JSON. Throws Error if a parameter is missing, is neither a string nor a whole number, does not
 * match `PLAIN_VALUE`, or contains `..`, and if the policy becomes too long.
 * @example
 * fillSessionPolicy({ Statement: [{ Resource: "arn:aws:s3:::{params.bucket}/*" }] }, { bucket: "reports" });
 */
export function fillSessionPolicy(policy: Readonly<Record<string, unknown>>, params: JsonObject): string {
  const filled = JSON.stringify(fill(policy as JsonObject, params));
  if (filled.length > MAX_POLICY) throw new Error(`the session policy is longer than ${MAX_POLICY} characters`);
  return filled;
}

function fill(value: JsonValue, params: JsonObject): JsonValue {
  if (typeof value === "string") return value.replaceAll(PLACEHOLDER, (_, name: string) => plainValue(name, params));
  if (Array.isArray(value)) return value.map((item) => fill(item, params));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, params)]));
}

function plainValue(name: string, params: JsonObject): string {
  const value = Object.hasOwn(params, name) ? params[name] : undefined;
  const text = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  if (typeof text !== "string" || !PLAIN_VALUE.test(text) || text.includes(".."))
    throw new Error(`the parameter "${name}" is missing, or has characters that a session policy must not contain`);
  return text;
}
