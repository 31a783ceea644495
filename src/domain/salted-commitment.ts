/**
 * Values that a ledger entry commits to and the action's row stores until erasure. A value is stored as canonical JSON
 * of its members and `salt`, which is 32 random bytes in hex. Each value has its own salt. With a shared salt, someone
 * who knows the salt of one commitment could guess the value of another.
 */
import { canonicalBytes, canonicalText } from "./canonical.ts";
import { sha256Hex } from "./hash.ts";
import type { JsonObject } from "./json.ts";
import { commitDigest } from "./request.ts";

export type SaltedMembers = JsonObject & { salt: string };

/**
 * Returns SHA-256(salt ‖ SHA-256(canonical members without the salt)) in hex.
 * @example
 * commitSalted({ salt, reason: "late" });
 */
export function commitSalted({ salt, ...members }: SaltedMembers): string {
  return commitDigest(salt, sha256Hex(canonicalBytes(members)));
}

export function encodeSalted(members: SaltedMembers): string {
  return canonicalText(members);
}

/** Decodes a stored value. Returns null if the service did not write the string. */
export function decodeSalted(text: string | null): SaltedMembers | null {
  try {
    const parsed = JSON.parse(text ?? "null") as SaltedMembers | null;
    return typeof parsed?.salt === "string" ? parsed : null;
  } catch {
    return null;
  }
}

/** Returns true if `text` is the canonical form of the committed value. Without a commitment, `text` must be null. */
export function matchesCommitment(commitment: string | null | undefined, text: string | null): boolean {
  if (commitment === null || commitment === undefined) return text === null;
  const decoded = decodeSalted(text);
  try {
    return decoded !== null && commitSalted(decoded) === commitment && encodeSalted(decoded) === text;
  } catch {
    return false;
  }
}
