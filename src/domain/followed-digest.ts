/**
 * The digest of the followed entries, in order: SHA-256(previous digest ‖ leaf hash). The head contains it, so that a
 * process that reads only these entries can verify that none was changed, hidden or added.
 */
import { concatBytes, sha256 } from "./hash.ts";

/** The digest before the first followed entry: 32 zero bytes. */
export const NO_FOLLOWED_ENTRIES: Uint8Array = new Uint8Array(32);

export function addFollowedEntry(digest: Uint8Array, leafHash: Uint8Array): Uint8Array {
  return sha256(concatBytes(digest, leafHash));
}
