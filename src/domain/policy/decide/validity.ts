import { DEFAULT_REJECTION_HOLDS_MS, DEFAULT_VALIDITY_MS } from "../parse/bounds.ts";
import type { RequiredApproval } from "../types.ts";

/** How long an approval holds that was asked for so, also by an entry from before entries said it. Milliseconds. */
export function approvalValidityMs(terms: Partial<RequiredApproval> | null): number {
  return terms?.valid_for_ms ?? DEFAULT_VALIDITY_MS;
}

/** How long a rejection holds that was asked for so. Milliseconds; 0: not at all. */
export function rejectionHoldMs(terms: Partial<RequiredApproval> | null): number {
  return terms?.rejection_holds_ms ?? DEFAULT_REJECTION_HOLDS_MS;
}
