/**
 * Metadata of a request that is not part of the decision: trace, session, host, tool call. Policies cannot read it, and
 * the request hash does not cover it. So a request that differs only in metadata is a duplicate. The decision's entry
 * commits to it.
 */
import { canonicalBytes, commitSalted, decodeSalted, encodeSalted, type JsonObject } from "../../src/core.ts";

/** Maximum size of the canonical JSON, in bytes. */
export const MAX_META_BYTES = 4096;

export function countMetaBytes(meta: JsonObject): number {
  return canonicalBytes(meta).length;
}

/** Returns the commitment for the entry and the string for the row. Both are null if `meta` is empty. */
export function commitMeta(
  meta: JsonObject,
  newSalt: () => string,
): { commitment: string | null; text: string | null } {
  if (Object.keys(meta).length === 0) return { commitment: null, text: null };
  const saltedMeta = { meta, salt: newSalt() };
  return { commitment: commitSalted(saltedMeta), text: encodeSalted(saltedMeta) };
}

/** Returns the metadata in an action's row; `{}` if none was sent or it was erased. */
export function decodeMeta(text: string | null): JsonObject {
  return (decodeSalted(text)?.["meta"] ?? {}) as JsonObject;
}
