import { canonicalBytes, canonicalText } from "./canonical.ts";
import { concatBytes, fromHex, sha256, sha256Hex, toHex, utf8 } from "./hash.ts";
import type { ActionRequest } from "./actions.ts";
import type { JsonValue } from "./json.ts";

/** Canonical JSON of `{agent_id, context, operation, params, tool}` and its SHA-256 in hex (design, section 4). */
export function encodeRequest(request: ActionRequest): { text: string; hash: string } {
  const { agent_id, context, operation, params, tool } = request;
  const text = canonicalText({ agent_id, context, operation, params, tool });
  return { text, hash: sha256Hex(utf8(text)) };
}

/** SHA-256 of canonical `{agent_id, operation, params, tool}`, in hex: what is to run, without why. A permit names it. */
export function computeActionDigest({ agent_id, operation, params, tool }: Omit<ActionRequest, "context">): string {
  return sha256Hex(canonicalBytes({ agent_id, operation, params, tool }));
}

/** What was asked, of an action's row; null when it was erased. Throws SyntaxError for a text that the service did not write. */
export function parseStoredRequest({ request }: { request: string }): ActionRequest | null {
  return request === "" ? null : (JSON.parse(request) as ActionRequest);
}

/** The same, and throws SyntaxError also for JSON that is no request. */
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

/** SHA-256(salt ‖ digest), all raw bytes, in and out as hex. Lets what `digest` covers be erased later while the ledger still verifies. */
export function commitDigest(salt: string, digest: string): string {
  return toHex(sha256(concatBytes(fromHex(salt), fromHex(digest))));
}

/** What the ledger keeps of a reported result. */
export function commitResult(
  salt: string,
  result: { success: boolean; error: string | null; meta: JsonValue },
): string {
  return commitDigest(
    salt,
    sha256Hex(canonicalBytes({ error: result.error, meta: result.meta, success: result.success })),
  );
}
