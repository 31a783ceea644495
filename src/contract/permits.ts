import type { PermitFault, PermitTerms, PermitKey, PermitSubject } from "../domain/permit.ts";

/** A key whose permits are taken, as it is published. */
export interface PublishedPermitKey extends PermitKey {
  /** Until when, of one that another has followed. Milliseconds; null for the one that signs. */
  until: number | null;
}

export interface Permits {
  /** Throws PERMIT_KEY_RETIRED where `make` signs no permit that ends then: to be asked before one is granted. */
  assertSigns(expiresAt: number): void;
  /**
   * A new permit, signed with this process's key. Rejects with PERMIT_KEY_RETIRED where another key has followed that
   * one, and the permit would last longer than permits of that one are taken.
   */
  make(subject: PermitSubject, grant: PermitTerms): Promise<string>;
  /** What is wrong with a permit as one for `subject` at `now`; null when nothing is. In a job: by the keys as they stand under the lock. */
  check(permit: string, subject: PermitSubject, now: number): PermitFault | null;
  /** Every key whose permits are taken now, the one that signs first. Rejects with StorageError. */
  published(): Promise<readonly PublishedPermitKey[]>;
}
