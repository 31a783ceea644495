/** Gives the requests to one MCP server the access token of the person who signed in there, and renews the token. */
import {
  type AuthProvider,
  type FetchLike,
  OAuthError,
  OAuthErrorCode,
  refreshAuthorization,
} from "@modelcontextprotocol/client";
import type { SignInStore } from "./stored-sign-in.ts";

/** Timeout of a request to an authorization server. Milliseconds. */
const TIMEOUT_MS = 10_000;

/** Thrown if a person has to sign in. The message is the proxy's own and never quotes a server. */
export class SignInNeededError extends Error {}

/** Sends a request that carries a code, a token or a client's secret. Does not follow redirects. */
export const fetchWithoutRedirects: FetchLike = (url, init) =>
  fetch(url, { ...init, redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });

/**
 * @param name name of the server
 * @param store null if the proxy must not use sign-ins
 */
export function createUpstreamSignIn(name: string, store: SignInStore | null): AuthProvider {
  /** The newest token that a request got. */
  let handed: string | undefined;
  const needed = (why: string): SignInNeededError =>
    new SignInNeededError(`${why}; run "assent mcp login ${name}", with the same options as the proxy`);
  return {
    token: async () => (handed = store?.read()?.tokens.access_token),
    async onUnauthorized() {
      if (store === null)
        throw new SignInNeededError(
          "it requires a sign-in, which only a proxy on standard input and output or with ASSENT_MCP_TOKEN uses",
        );
      const rejected = handed;
      await store.withLock(async () => {
        const signIn = store.read();
        if (signIn === null) throw needed("it requires a sign-in");
        // Another process has renewed the token. A second use of the refresh token could end the sign-in.
        if (signIn.tokens.access_token !== rejected) return;
        const { metadata, client, resource, tokens } = signIn;
        if (tokens.refresh_token === undefined) throw needed("its sign-in has ended");
        const renewed = await refreshAuthorization(metadata.issuer, {
          metadata,
          clientInformation: client,
          refreshToken: tokens.refresh_token,
          ...(resource === null ? {} : { resource: new URL(resource) }),
          fetchFn: fetchWithoutRedirects,
        }).catch((error: unknown) => {
          const isFinal =
            error instanceof OAuthError &&
            [OAuthErrorCode.InvalidGrant, OAuthErrorCode.InvalidClient, OAuthErrorCode.UnauthorizedClient].includes(
              error.code as OAuthErrorCode,
            );
          if (!isFinal)
            throw new SignInNeededError("its authorization server did not renew the sign-in; try again later", {
              cause: error,
            });
          store.remove();
          throw needed("its sign-in has ended or was revoked");
        });
        store.write({ ...signIn, tokens: { ...renewed, issuer: metadata.issuer } });
      });
    },
  };
}
