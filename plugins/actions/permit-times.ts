/** The times of permits, in whole seconds. */

/**
 * Returns a permit's times in whole seconds, as JWT requires.
 * @param until the deadline for starting the action
 */
export function computePermitTimes(
  now: number,
  validSeconds: number,
  until: number,
): { issued_at: number; expires_at: number } {
  const issued_at = Math.floor(now / 1000) * 1000;
  return { issued_at, expires_at: Math.min(issued_at + validSeconds * 1000, Math.floor(until / 1000) * 1000) };
}

/**
 * Returns the times on a clock that is `aheadMs` behind, in whole seconds. Verifiers check permits by the time of day,
 * and the ledger's clock can be ahead of it.
 */
export function shiftPermitTimes(
  { issued_at, expires_at }: { issued_at: number; expires_at: number },
  aheadMs: number,
): { issued_at: number; expires_at: number } {
  const shifted = Math.floor((issued_at - aheadMs) / 1000) * 1000;
  return { issued_at: shifted, expires_at: shifted + expires_at - issued_at };
}
