/**
 * What is kept beside a request and is no part of it: trace, session, host, tool call. Policies do not read it and the
 * request hash does not cover it, so that the same wish is the same wish in another session. The decision's entry
 * commits to it.
 */
import { canonicalBytes } from "./canonical.ts";
import type { JsonObject } from "./json.ts";
import { commitSalted, encodeSalted, decodeSalted } from "./kept.ts";

/** Bytes of its canonical JSON. */
export const MAX_META_BYTES = 4096;

export function countMetaBytes(meta: JsonObject): number {
  return canonicalBytes(meta).length;
}

/** What the entry holds and what the row keeps; null and null where there is nothing to keep. */
export function commitMeta(
  meta: JsonObject,
  newSalt: () => string,
): { commitment: string | null; text: string | null } {
  if (Object.keys(meta).length === 0) return { commitment: null, text: null };
  const kept = { meta, salt: newSalt() };
  return { commitment: commitSalted(kept), text: encodeSalted(kept) };
}

/** Of an action's row. Empty where nothing was sent, or what was sent is erased. */
export function decodeMeta(text: string | null): JsonObject {
  return (decodeSalted(text)?.["meta"] ?? {}) as JsonObject;
}

/** W3C Trace Context, section 3.2.2: of version 00, or of a later one that has no more fields. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

export function isTraceparent(text: string): boolean {
  return TRACEPARENT.test(text);
}
