import { canonicalBytes, canonicalText } from "./canonical.ts";
import { concatBytes, fromHex, sha256, sha256Hex, toHex, utf8 } from "./hash.ts";
import type { ActionRequest } from "./actions.ts";
import type { JsonValue } from "./json.ts";

/**
 * Returns the canonical JSON of `{agent_id, context, operation, params, tool}` and its SHA-256 in hex.
 * @example
 * const { text, hash } = encodeRequest({ agent_id: "bot", tool: "stripe", operation: "refund", params: { amount: 5 }, context: {} });
 */
export function encodeRequest(request: ActionRequest): { text: string; hash: string } {
  const { agent_id, context, operation, params, tool } = request;
  const text = canonicalText({ agent_id, context, operation, params, tool });
  return { text, hash: sha256Hex(utf8(text)) };
}

/**
 * Returns the SHA-256 of canonical `{agent_id, operation, params, tool}` in hex, which permits contain. Excludes
 * `context`.
 */
export function computeActionDigest({ agent_id, operation, params, tool }: Omit<ActionRequest, "context">): string {
  return sha256Hex(canonicalBytes({ agent_id, operation, params, tool }));
}

/** Parses the request in an action's row; returns null if it was erased. Throws SyntaxError for invalid JSON. */
export function parseStoredRequest({ request }: { request: string }): ActionRequest | null {
  return request === "" ? null : (JSON.parse(request) as ActionRequest);
}

/**
 * Parses the request like `parseStoredRequest`, and also throws SyntaxError if a member is missing or has the wrong
 * type.
 */
export function parseCompleteRequest(row: { request: string }): ActionRequest | null {
  if (row.request === "") return null;
  const request = parseStoredRequest(row) as Partial<ActionRequest> | null;
  const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);
  const isWhole =
    isObject(request) &&
    [request?.agent_id, request?.tool, request?.operation].every((name) => typeof name === "string") &&
    isObject(request?.params) &&
    isObject(request?.context);
  if (!isWhole) throw new SyntaxError("the row's request is not an action's");
  return request as ActionRequest;
}

/**
 * Returns SHA-256(salt ‖ digest) in hex; the hash covers the raw bytes of both. The ledger can still be verified after
 * the committed value is erased.
 * @example
 * commitDigest(salt, paramsDigest) === entry.params_commitment;
 */
export function commitDigest(salt: string, digest: string): string {
  return toHex(sha256(concatBytes(fromHex(salt), fromHex(digest))));
}

/**
 * Returns the ledger's commitment to a reported result.
 * @example
 * commitResult(salt, { success: true, error: null, meta: null });
 */
export function commitResult(
  salt: string,
  result: { success: boolean; error: string | null; meta: JsonValue },
): string {
  return commitDigest(
    salt,
    sha256Hex(canonicalBytes({ error: result.error, meta: result.meta, success: result.success })),
  );
}
