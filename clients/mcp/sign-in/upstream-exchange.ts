/**
 * Gives the requests to one MCP server a token of the user whose session sends them: exchanges the credential that the
 * user's client sent to the proxy (RFC 8693). The token is only in memory.
 */
import type { AuthProvider } from "@modelcontextprotocol/client";
import type { ExchangeOptions } from "../config/server-config.ts";
import { isObject } from "../transport/rpc-message.ts";
import { assertBearer, fetchWithoutRedirects, SignInNeededError } from "./upstream-sign-in.ts";

const TYPE = "urn:ietf:params:oauth:token-type:";
const ISSUED_TYPES = [`${TYPE}access_token`, `${TYPE}jwt`];
/** A token is replaced this long before it expires. Milliseconds. */
const EARLY_MS = 10_000;
/** Lifetime of a token if its authorization server states none, and the maximum. Milliseconds. */
const [DEFAULT_MS, MAX_MS] = [60_000, 3_600_000];

interface Exchanged {
  token: string;
  /** Milliseconds of the monotonic clock. */
  expiresAt: number;
}

/**
 * @param subject returns the newest token of the session's user; null if another authorization server issued it, which
 * must not get it
 */
export function createUpstreamExchange(options: ExchangeOptions, subject: (() => string) | null): AuthProvider {
  let newest: { credential: string; token: Promise<string>; expiresAt: number } | null = null;
  return {
    token() {
      if (subject === null)
        throw new SignInNeededError(
          "the user's token was not issued by `listen.users.issuer`, so it cannot be exchanged",
        );
      const credential = subject();
      if (newest?.credential === credential && newest.expiresAt > performance.now()) return newest.token;
      const issued = exchange(options, credential);
      const entry = { credential, token: issued.then(({ token }) => token), expiresAt: Infinity };
      newest = entry;
      issued.then(
        ({ expiresAt }) => (entry.expiresAt = expiresAt),
        () => (entry.expiresAt = -Infinity),
      );
      return entry.token;
    },
    // The official transport repeats the request once.
    async onUnauthorized() {
      newest = null;
    },
  };
}

/** Resolves to a token for the server. @throws SignInNeededError whose message quotes no server */
async function exchange(
  { token_endpoint, client_id, client_secret, ...wanted }: ExchangeOptions,
  subject: string,
): Promise<Exchanged> {
  const startedAt = performance.now();
  const credentials = [client_id, client_secret].map((text) => new URLSearchParams({ "": text }).toString().slice(1));
  const form = new URLSearchParams({
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    subject_token: subject,
    subject_token_type: `${TYPE}access_token`,
    requested_token_type: `${TYPE}access_token`,
  });
  for (const [name, value] of Object.entries(wanted)) if (value !== undefined) form.set(name, value);
  let status: number;
  let reply: unknown;
  try {
    const response = await fetchWithoutRedirects(token_endpoint, {
      method: "POST",
      headers: {
        accept: "application/json",
        "content-type": "application/x-www-form-urlencoded",
        authorization: `Basic ${Buffer.from(credentials.join(":")).toString("base64")}`,
      },
      body: form.toString(),
    });
    ({ status } = response);
    reply = await response.json();
  } catch (cause) {
    const message = "its authorization server did not exchange the user's token; try again later";
    throw new SignInNeededError(message, { cause });
  }
  if (status >= 400 && status < 500)
    throw new SignInNeededError(`its authorization server refused to exchange the user's token (status ${status})`);
  const { access_token, issued_token_type, token_type, expires_in } = isObject(reply) ? reply : {};
  try {
    if (status !== 200) throw new Error(`the status is ${status}`);
    if (typeof access_token !== "string" || typeof token_type !== "string") throw new Error("it has no token");
    if (!ISSUED_TYPES.includes(issued_token_type as string)) throw new Error("it has a token of another type");
    // The server must not get the credential of the user at the proxy.
    if (access_token === subject) throw new Error("it has the token that was to be exchanged");
    assertBearer({ access_token, token_type });
  } catch (cause) {
    const message = "the response of its authorization server to the exchange of the user's token is not valid";
    throw new SignInNeededError(message, { cause });
  }
  const isLifetime = typeof expires_in === "number" && expires_in > 0;
  const lifetime = isLifetime ? Math.min(expires_in * 1000, MAX_MS) : DEFAULT_MS;
  return { token: access_token, expiresAt: startedAt + Math.max(lifetime - EARLY_MS, lifetime / 2) };
}
