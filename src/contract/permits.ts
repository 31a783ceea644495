import type { PermitFault, PermitTerms, PermitKey, PermitSubject } from "../domain/permit.ts";

/** A published permit key. The service accepts permits that this key signed. */
export interface PublishedPermitKey extends PermitKey {
  /** Expiry of a replaced key, in milliseconds since the epoch; null for the signing key. */
  until: number | null;
}

export interface Permits {
  /**
   * Throws PERMIT_KEY_RETIRED if this process cannot sign a permit with this expiry. Call it before granting a permit.
   */
  assertSigns(expiresAt: number): void;
  /**
   * Creates a permit and signs it with this process's key. Rejects with PERMIT_KEY_RETIRED if that key was replaced and
   * the permit would outlast the key's expiry.
   */
  make(subject: PermitSubject, grant: PermitTerms): Promise<string>;
  /**
   * Verifies a permit for `subject`, except for its times, with the keys that are accepted at `now`. Returns the fault,
   * or null if it is genuine. Within a ledger transaction, uses the keys that were read under the lock.
   */
  check(permit: string, subject: PermitSubject, now: number): PermitFault | null;
  /** Returns the accepted keys, the signing key first. Rejects with StorageError. */
  published(): Promise<readonly PublishedPermitKey[]>;
}
