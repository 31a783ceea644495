/**
 * Digests that remain of an erased request while its rejection is in force, so that an erasure does not lift the
 * rejection. The row then has keyed digests in place of the hashes of the request, and a new salt. Only someone with
 * the service's secret can test guesses of the request against them.
 */
import { commitDigest } from "./request.ts";

/** The columns of an erased action's row by which the service recognizes a duplicate of the rejected request. */
interface RejectionDigests {
  request_hash: string;
  /** Null unless the request was changed. */
  effective_hash: string | null;
  salt: string;
}

/** Returns the commitments that the erasure's entry records. */
export function commitRejectionDigests({ request_hash, effective_hash, salt }: RejectionDigests): string[] {
  return [request_hash, ...(effective_hash === null ? [] : [effective_hash])].map((digest) =>
    commitDigest(salt, digest),
  );
}

/** Returns true if the row of an erased action has the digests that its entries record. */
export function matchesRejectionDigests(recorded: readonly string[], row: RejectionDigests): boolean {
  if (recorded.length === 0) return row.request_hash === "" && row.salt === "" && row.effective_hash === null;
  try {
    return commitRejectionDigests(row).join() === recorded.join();
  } catch {
    // `commitDigest` throws for values that are not hex.
    return false;
  }
}
