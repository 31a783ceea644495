import type { Refusal } from "./errors.ts";
import type { Credential } from "./host.ts";

/** The credential of an answer that can outlast its request. */
export interface HeldCredential {
  /**
   * Aborts when the credential has ended, its rights have changed, or the service begins to stop. Its reason is a
   * `Refusal`. Reading this member starts the observation, which lasts until `release`.
   */
  readonly signal: AbortSignal;
  /** Whether `signal` has been read. */
  readonly isObserved: boolean;
  /** Why the answer must end; null while it can continue. */
  readonly refusal: Refusal | null;
  /** Returns true if the credential is valid and as new as every epoch that this process has seen. Reads nothing. */
  isCurrent(): boolean;
  /**
   * Returns the credential after reading it again if necessary. Rejects with INVALID_CREDENTIAL or MISSING_CREDENTIAL if
   * it has ended, and with RIGHTS_CHANGED if its rights differ from those at the start of the answer.
   */
  confirm(): Promise<Credential>;
  /** Ends the observation. */
  release(): void;
}
