/** Gives the requests to one MCP server the access token of the person who signed in there, and renews the token. */
import {
  type AuthProvider,
  type FetchLike,
  OAuthError,
  OAuthErrorCode,
  type OAuthTokens,
  refreshAuthorization,
} from "@modelcontextprotocol/client";
import type { SignInStore } from "./stored-sign-in.ts";

/** Timeout of a request to an authorization server. Milliseconds. */
const TIMEOUT_MS = 10_000;

/** Thrown if a person has to sign in. The message is the proxy's own and never quotes a server. */
export class SignInNeededError extends Error {}

/** Maximum size of a response of an authorization server. */
const MAX_BYTES = 1 << 20;
/** Maximum length of an access token, which is in a header of each request. */
const MAX_TOKEN_LENGTH = 16_384;

/** Sends a request that carries a code, a token or a client's secret. Does not follow redirects. */
export const fetchWithoutRedirects: FetchLike = async (url, init) => {
  const response = await fetch(url, { ...init, redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
  const { body, status, headers } = response;
  if (body === null) return response;
  let bytes = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) controller.error(new Error(`the response has more than ${MAX_BYTES} bytes`));
      else controller.enqueue(chunk);
    },
  });
  return new Response(body.pipeThrough(limit), { status, headers });
};

/** Throws unless requests can carry the token. The message has no token. With an empty one, calls would run as no one. */
export function assertBearer({ access_token: token, token_type: type }: OAuthTokens): void {
  if (type.toLowerCase() !== "bearer") throw new Error("the authorization server issued no bearer token");
  if (token.length > MAX_TOKEN_LENGTH || !/^[\x21-\x7e]+$/.test(token))
    throw new Error("the authorization server issued a token that does not fit in a header");
}

/**
 * @param name name of the server
 * @param store null if the proxy must not use sign-ins
 */
export function createUpstreamSignIn(name: string, store: SignInStore | null): AuthProvider {
  /** The newest token that a request got. */
  let handed: string | undefined;
  const needed = (why: string): SignInNeededError =>
    new SignInNeededError(`${why}; run "assent mcp login ${name}", with the same options as the proxy`);
  const explain = (error: unknown): never => {
    if (error instanceof SignInNeededError) throw error;
    throw new SignInNeededError(`its sign-in cannot be read or stored: ${(error as Error).message}`, { cause: error });
  };
  const ended = (): SignInNeededError => needed("its sign-in has ended or was revoked");
  const readToken = async (): Promise<string | undefined> => {
    const signIn = store?.read() ?? null;
    if (signIn?.tokens === null) throw ended();
    return signIn?.tokens.access_token;
  };
  return {
    token: async () => (handed = await readToken().catch(explain)),
    async onUnauthorized() {
      if (store === null)
        throw new SignInNeededError(
          "it requires a sign-in, which only a proxy on standard input and output or with ASSENT_MCP_TOKEN uses",
        );
      const rejected = handed;
      const renew = async (): Promise<void> => {
        const signIn = store.read();
        if (signIn === null) throw needed("it requires a sign-in");
        const { metadata, client, resource, tokens } = signIn;
        if (tokens === null) throw ended();
        // Another process has renewed the token. A second use of the refresh token could end the sign-in.
        if (tokens.access_token !== rejected) return;
        if (tokens.refresh_token === undefined) throw needed("its sign-in has ended");
        const request = refreshAuthorization(metadata.issuer, {
          metadata,
          clientInformation: client,
          refreshToken: tokens.refresh_token,
          ...(resource === null ? {} : { resource: new URL(resource) }),
          fetchFn: fetchWithoutRedirects,
        });
        const check = (issued: OAuthTokens): OAuthTokens => (assertBearer(issued), issued);
        const renewed = await request.then(check).catch((error: unknown) => {
          const isFinal =
            error instanceof OAuthError &&
            [OAuthErrorCode.InvalidGrant, OAuthErrorCode.InvalidClient, OAuthErrorCode.UnauthorizedClient].includes(
              error.code as OAuthErrorCode,
            );
          if (!isFinal)
            throw new SignInNeededError("its authorization server did not renew the sign-in; try again later", {
              cause: error,
            });
          store.write({ ...signIn, tokens: null });
          throw ended();
        });
        store.write({ ...signIn, tokens: { ...renewed, issuer: metadata.issuer } });
      };
      await store.withLock(renew).catch(explain);
    },
  };
}
