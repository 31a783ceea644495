/**
 * The contract of credential issuers. An issuer creates a short-lived credential for one action at its start, so that
 * no agent needs a long-lived one. The core hands the credential to the key that started the action and records its
 * digest. It ends the credential when the action ends, expires, is stopped, or its agent or key loses access.
 */
import type { JsonObject } from "../domain/json.ts";

/** The started action. Its request was verified against the ledger. */
export interface CredentialAction {
  readonly id: string;
  readonly agent_id: string;
  readonly tool: string;
  readonly operation: string;
  readonly params: JsonObject;
}

export interface IssuedCredential {
  /**
   * The secret for the tool, such as a user name and a password. At most 16 KiB as JSON. Contains at least 128 random
   * bits, because the ledger contains its SHA-256, which could otherwise be guessed.
   */
  readonly secret: JsonObject;
  /** When the credential expires. Milliseconds since the epoch, at most a day ahead. */
  readonly expires_at: number;
  /**
   * The value that `revoke` needs to end the credential, at most 8 KiB. Stored encrypted until then. Null if the
   * credential can only expire.
   */
  readonly revocation: string | null;
}

export interface CredentialIssuer {
  /** Unique among all issuers. Recorded with each credential. */
  readonly name: string;
  /** Patterns as in policies, ignoring case. An action must match one pattern of each list. */
  readonly tools: readonly string[];
  readonly operations: readonly string[];
  /**
   * Creates a credential for exactly this action. Called again if the start is repeated after a lost response. If it
   * rejects, or does not resolve before `signal` aborts, the action does not start. A credential that was created in
   * such a call must expire by itself.
   */
  issue(action: CredentialAction, signal: AbortSignal): Promise<IssuedCredential>;
  /**
   * Ends a credential. Called at least once for each credential that has a `revocation`, also after it expired, until it
   * resolves. Must be idempotent.
   */
  revoke?(revocation: string, signal: AbortSignal): Promise<void>;
}
