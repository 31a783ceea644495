/** What a passkey signs to confirm one vote. */
import { canonicalText } from "./canonical.ts";
import { sha256Hex, utf8 } from "./hash.ts";

/** The vote that a gesture confirms. */
export interface GestureSubject {
  /** Origin of the log, so that a gesture for another service is not valid here. */
  origin: string;
  action_id: string;
  request_hash: string;
  approve: boolean;
}

/**
 * Returns the digest that the passkey's challenge must be: SHA-256 of `assent-gesture/1`, a line feed and the canonical
 * JSON of the subject. Lowercase hex.
 */
export function gestureDigest({ origin, action_id, request_hash, approve }: GestureSubject): string {
  return sha256Hex(utf8(`assent-gesture/1\n${canonicalText({ action_id, approve, origin, request_hash })}`));
}
