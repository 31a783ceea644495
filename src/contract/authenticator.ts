import type { Credential } from "./host.ts";

/**
 * Recognizes callers by something other than an API key, such as the cookie of a session. Asked only for requests
 * without an `Authorization` header, on routes that need a scope, in the order of the plugins.
 */
export interface Authenticator {
  name: string;
  /**
   * Resolves to null if the request carries nothing that this authenticator knows; the next one is asked then. Rejects with a
   * `Refusal` (`MISSING_CREDENTIAL` or another 401 or 403) if what the request carries is not valid.
   */
  authenticate(request: Request): Promise<Authenticated | null>;
}

export interface Authenticated {
  credential: Credential;
  /** Headers for the response, e.g. `Set-Cookie`. */
  headers?: Record<string, string>;
}
