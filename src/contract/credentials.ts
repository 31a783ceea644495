/**
 * The contract of credential issuers. An issuer creates a short-lived credential for one action at its start, so that
 * no agent needs a long-lived credential. The core returns the credential to the key that started the action, and
 * records the credential's digest. The core revokes the credential when the action ends, expires or is stopped, or when
 * its agent or key loses access.
 */
import type { JsonObject } from "../domain/json.ts";

/** The started action. Its request was verified against the ledger. */
export interface ToolCredentialAction {
  readonly id: string;
  readonly agent_id: string;
  readonly tool: string;
  readonly operation: string;
  readonly params: JsonObject;
}

export interface IssuedToolCredential {
  /**
   * The secret for the tool, such as a user name and a password. At most 16 KiB as JSON. Must contain at least 128
   * random bits, because the ledger contains its SHA-256, from which a weaker secret could be guessed.
   */
  readonly secret: JsonObject;
  /** Expiry of the credential, at most a day from now. Milliseconds since the epoch. */
  readonly expires_at: number;
  /**
   * The value that `revoke` needs, at most 8 KiB. Stored encrypted until the credential is revoked. Null if the
   * credential can only expire.
   */
  readonly revocation: string | null;
}

/** Issues a short-lived credential to a tool for one action. */
export interface ToolCredentialIssuer {
  /** Unique among all issuers. Recorded with each credential. */
  readonly name: string;
  /**
   * Case-insensitive patterns with the syntax of policies. An action must match one pattern of `tools` and one of
   * `operations`.
   */
  readonly tools: readonly string[];
  readonly operations: readonly string[];
  /**
   * Creates a credential for exactly this action. Called again if the caller retries a start whose response was lost.
   * If the promise rejects, or does not resolve before `signal` aborts, the action does not start. A credential that a
   * failed call created must expire by itself.
   */
  issue(action: ToolCredentialAction, signal: AbortSignal): Promise<IssuedToolCredential>;
  /**
   * Revokes a credential. Called only for credentials with a `revocation`. Called again until a call resolves, for up
   * to seven days after the credential has expired. Must be idempotent.
   */
  revoke?(revocation: string, signal: AbortSignal): Promise<void>;
}
