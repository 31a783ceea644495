/**
 * What an entry only commits to, and the action's row keeps until it is erased: its members with 32 random bytes in hex
 * beside them, as canonical JSON. Each has a salt of its own: whoever may open one commitment could otherwise try values
 * of another until one fits.
 */
import { canonicalBytes, canonicalText } from "./canonical.ts";
import { sha256Hex } from "./hash.ts";
import type { JsonObject } from "./json.ts";
import { commitDigest } from "./request.ts";

export type SaltedMembers = JsonObject & { salt: string };

/** SHA-256(salt ‖ SHA-256(canonical members without the salt)), hex. */
export function commitSalted({ salt, ...members }: SaltedMembers): string {
  return commitDigest(salt, sha256Hex(canonicalBytes(members)));
}

export function encodeSalted(kept: SaltedMembers): string {
  return canonicalText(kept);
}

/** Null for a text that the service did not write. */
export function decodeSalted(text: string | null): SaltedMembers | null {
  try {
    const kept = JSON.parse(text ?? "null") as SaltedMembers | null;
    return typeof kept?.salt === "string" ? kept : null;
  } catch {
    return null;
  }
}

/** Whether `text` is what the entry commits to, and written as the service writes it; without a commitment, whether there is none. */
export function matchesCommitment(commitment: string | null | undefined, text: string | null): boolean {
  if (commitment === null || commitment === undefined) return text === null;
  const kept = decodeSalted(text);
  try {
    return kept !== null && commitSalted(kept) === commitment && encodeSalted(kept) === text;
  } catch {
    return false;
  }
}
