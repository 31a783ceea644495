/**
 * Lets a person sign in at an MCP server and consent, with the authorization of MCP 2025-11-25 and 2026-07-28: an
 * authorization code with PKCE for a public client, whose redirect goes to this process (RFC 8252).
 */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  auth,
  type FetchLike,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { isProtected, type HttpTarget } from "../config/server-config.ts";
import type { SignIn } from "./stored-sign-in.ts";
import { assertBearer, fetchWithoutRedirects } from "./upstream-sign-in.ts";

/** Time limit for the person. Milliseconds. */
const CONSENT_MS = 10 * 60_000;
const PATH = "/callback";

/**
 * Resolves to the sign-in once the person has consented and the server accepts the token.
 * @param show called with the link to open, and the issuer that the person signs in at
 * @throws Error whose message can be shown to the user
 */
export async function requestConsent(
  { url, headers, ...target }: HttpTarget,
  show: (link: string, issuer: string) => void,
  timeoutMs = CONSENT_MS,
): Promise<SignIn> {
  const oauth = target.oauth ?? {};
  // A server elsewhere must not send the browser or this process to addresses of this machine.
  const isLocal = new URL(url).protocol === "http:";
  const requireTls = (to: string | URL): void => {
    if (new URL(to).protocol !== "https:" && !(isLocal && isProtected(to)))
      throw new TypeError("the server or its authorization server has an endpoint without TLS");
  };
  const challenge = await probe(url, headers);
  if (challenge.status !== 401)
    throw new Error(`the server does not ask for a sign-in: it answered with status ${challenge.status}`);
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(challenge);
  // The state is known only to this process and to the browser that opens the link.
  const state = randomBytes(32).toString("base64url");
  const callback = await listenForCallback(state);
  let [discovery, resource, verifier, link]: [OAuthDiscoveryState | undefined, string | null, string, URL | null] = [
    undefined,
    null,
    "",
    null,
  ];
  let client = oauth.client_id === undefined ? undefined : toClient(oauth.client_id, oauth.client_secret);
  let tokens: StoredOAuthTokens | undefined;
  const provider: OAuthClientProvider = {
    redirectUrl: callback.url,
    clientMetadata: {
      client_name: "Assent MCP proxy",
      redirect_uris: [callback.url],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    },
    ...(oauth.client_metadata_url === undefined ? {} : { clientMetadataUrl: oauth.client_metadata_url }),
    state: () => state,
    clientInformation: () => client,
    saveClientInformation: (saved) => void (client = saved),
    tokens: () => tokens,
    saveTokens: (saved) => void (tokens = saved),
    redirectToAuthorization: (to) => void (link = to),
    saveCodeVerifier: (saved) => void (verifier = saved),
    codeVerifier: () => verifier,
    saveResourceUrl: (saved) => void (resource = saved),
    discoveryState: () => discovery,
    saveDiscoveryState(found) {
      // Before anything is sent to the authorization server.
      assertSupported(found, oauth.issuer, requireTls);
      discovery = found;
    },
  };
  const fetchFn: FetchLike = async (to, init) => {
    requireTls(to);
    return fetchWithoutRedirects(to, init);
  };
  const about = {
    serverUrl: url,
    fetchFn,
    ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
    ...((oauth.scope ?? scope) === undefined ? {} : { scope: (oauth.scope ?? scope) as string }),
  };
  try {
    await auth(provider, { ...about, forceReauthorization: true });
    const metadata = (discovery as OAuthDiscoveryState | undefined)?.authorizationServerMetadata;
    if (link === null || metadata === undefined)
      throw new Error("the authorization server has no authorization endpoint");
    show((link as URL).href, metadata.issuer);
    const { code, iss } = await callback.wait(timeoutMs);
    await auth(provider, { ...about, authorizationCode: code, ...(iss === null ? {} : { iss }) });
    const got = tokens as StoredOAuthTokens | undefined;
    if (got === undefined || client === undefined) throw new Error("the authorization server issued no token");
    assertBearer(got);
    const accepted = await probe(url, { ...headers, authorization: `Bearer ${got.access_token}` });
    if (accepted.status === 401 || accepted.status === 403)
      throw new Error(`the server does not accept the token of its authorization server: status ${accepted.status}`);
    return { url, metadata, resource, client, tokens: got };
  } finally {
    callback.close();
  }
}

const toClient = (client_id: string, client_secret: string | undefined): StoredOAuthClientInformation => ({
  client_id,
  ...(client_secret === undefined ? {} : { client_secret }),
});

/** Sends a request without effects. The body of the response is discarded. */
async function probe(url: string, headers: Readonly<Record<string, string>>): Promise<Response> {
  const body = { jsonrpc: "2.0", id: 1, method: "ping" };
  const response = await fetchWithoutRedirects(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify(body),
  });
  await response.body?.cancel().catch(() => {});
  return response;
}

/** Throws unless the authorization server is the expected one, has endpoints that a browser may open, and supports PKCE. */
function assertSupported(
  { authorizationServerMetadata: metadata }: OAuthDiscoveryState,
  expected: string | undefined,
  requireTls: (endpoint: string) => void,
): void {
  if (metadata === undefined) throw new Error("the authorization server has no metadata");
  if (expected !== undefined && metadata.issuer !== expected)
    throw new Error(
      `the server names the authorization server ${metadata.issuer}; the configuration expects ${expected}`,
    );
  if (metadata.code_challenge_methods_supported?.includes("S256") !== true)
    throw new Error(`the authorization server ${metadata.issuer} does not support PKCE with S256`);
  for (const endpoint of [metadata.authorization_endpoint, metadata.token_endpoint]) requireTls(endpoint);
}

interface Callback {
  url: string;
  /** Resolves to the code in the first redirect that has the right state. Rejects if the person or the server refused. */
  wait(timeoutMs: number): Promise<{ code: string; iss: string | null }>;
  close(): void;
}

async function listenForCallback(state: string): Promise<Callback> {
  let finish = (_result: URLSearchParams): void => {};
  const arrived = new Promise<URLSearchParams>((resolve) => (finish = resolve));
  const isState = (given: string): boolean =>
    given.length === state.length && timingSafeEqual(Buffer.from(given), Buffer.from(state));
  const server = createServer((request, response) => {
    // Any program or page on this machine can send a request, also with a target that is no URL.
    const target = `http://127.0.0.1${request.url ?? "/"}`;
    const { pathname, searchParams } = new URL(URL.canParse(target) ? target : "http://127.0.0.1/");
    const isOurs = request.method === "GET" && pathname === PATH && isState(searchParams.get("state") ?? "");
    response.writeHead(isOurs ? 200 : 400, {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      connection: "close",
    });
    response.end(
      isOurs ? "Return to the terminal. You can close this page.\n" : "This is not the answer to the open sign-in.\n",
    );
    if (isOurs) finish(searchParams);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`,
    async wait(timeoutMs) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error("no one signed in within the time limit")), timeoutMs);
      });
      try {
        const result = await Promise.race([arrived, late]);
        const [code, error, iss] = [result.get("code"), result.get("error"), result.get("iss")];
        if (error !== null)
          throw new Error(`the authorization server refused: ${error.replaceAll(/[^\w.-]/g, "").slice(0, 60)}`);
        if (code === null) throw new Error("the authorization server sent no code");
        return { code, iss };
      } finally {
        clearTimeout(timer);
      }
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
