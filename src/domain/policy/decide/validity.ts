import { DEFAULT_REJECTION_HOLDS_MS, DEFAULT_VALIDITY_MS } from "../parse/bounds.ts";
import type { RequiredApproval } from "../policy-types.ts";

/** Returns how long an approval is valid. Milliseconds. */
export function approvalValidityMs(terms: Partial<RequiredApproval> | null): number {
  return terms?.valid_for_ms ?? DEFAULT_VALIDITY_MS;
}

/** Returns how long a rejection denies duplicate requests. Milliseconds; 0 if it does not deny them. */
export function rejectionHoldMs(terms: Partial<RequiredApproval> | null): number {
  return terms?.rejection_holds_ms ?? DEFAULT_REJECTION_HOLDS_MS;
}
