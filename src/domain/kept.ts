/**
 * What an entry only commits to, and the action's row keeps until it is erased: its members with 32 random bytes in hex
 * beside them, as canonical JSON. Each has a salt of its own: whoever may open one commitment could otherwise try values
 * of another until one fits.
 */
import { canonicalBytes, canonicalText } from "./canonical.ts";
import { sha256Hex } from "./hash.ts";
import type { JsonObject } from "./json.ts";
import { commit } from "./request.ts";

export type Kept = JsonObject & { salt: string };

/** SHA-256(salt ‖ SHA-256(canonical members without the salt)), hex. */
export function commitKept({ salt, ...members }: Kept): string {
  return commit(salt, sha256Hex(canonicalBytes(members)));
}

export function keptText(kept: Kept): string {
  return canonicalText(kept);
}

/** Null for a text that the service did not write. */
export function readKept(text: string | null): Kept | null {
  try {
    const kept = JSON.parse(text ?? "null") as Kept | null;
    return typeof kept?.salt === "string" ? kept : null;
  } catch {
    return null;
  }
}

/** Whether `text` is what the entry commits to, and written as the service writes it; without a commitment, whether there is none. */
export function opensKept(commitment: string | null | undefined, text: string | null): boolean {
  if (commitment === null || commitment === undefined) return text === null;
  const kept = readKept(text);
  try {
    return kept !== null && commitKept(kept) === commitment && keptText(kept) === text;
  } catch {
    return false;
  }
}
