import type { Credential } from "./host.ts";

/**
 * Authenticates callers with something other than an API key: the cookie of a session, or the token of a workload.
 * Authenticators are called in the order of the plugins. An authenticator has at least one of the two methods.
 */
export interface Authenticator {
  name: string;
  /**
   * Called for requests without an `Authorization` header, on routes that require a scope. Resolves to null if the
   * request has no credential that this authenticator knows; in that case the next authenticator is called. Rejects
   * with a `Refusal` (`MISSING_CREDENTIAL` or another 401 or 403) if the credential is not valid.
   */
  authenticate?(request: Request): Promise<AuthenticationResult | null>;
  /**
   * Called for a bearer value in the form of a JWT, on routes that require a scope and in facades. Resolves to null if
   * the value is not for this authenticator: in that case the next authenticator is called, and the value can still be
   * an API key. Rejects with a `Refusal` (`INVALID_CREDENTIAL` for a token that is not valid).
   */
  authenticateToken?(token: string): Promise<Credential | null>;
}

export interface AuthenticationResult {
  credential: Credential;
  /** Headers for the response, e.g. `Set-Cookie`. */
  headers?: Record<string, string>;
}
