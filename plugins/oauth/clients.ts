/**
 * Clients that register themselves (RFC 7591). The id of a client contains its registration, so that unauthenticated
 * requests write nothing. Such clients have no secret, and everything about them is their own statement.
 */
import { isJsonObject, type JsonObject, sha256Hex, toBase64Url, utf8 } from "../../src/core.ts";
import { OAuthError } from "./schemas.ts";

export interface PublicClient {
  /** `client_id` of the client. */
  id: string;
  name: string;
  redirect_uris: readonly string[];
}

const PREFIX = "app_";
const MAX_NAME = 80;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
const MAX_URIS = 10;
const MAX_URI = 500;
/** Schemes of desktop applications that do not contain a dot, as RFC 8252 would require. */
const APP_SCHEMES = ["cursor:", "vscode:", "vscode-insiders:"];
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** Registers a client, and returns what it must know about itself. Throws OAuthError. */
export function registerClient(metadata: JsonObject): JsonObject {
  const { client_name: name = "An MCP client", redirect_uris } = metadata;
  const uris: unknown[] = Array.isArray(redirect_uris) ? redirect_uris : [];
  if (uris.length === 0 || uris.length > MAX_URIS)
    throw new OAuthError("invalid_redirect_uri", `redirect_uris must be a list of 1 to ${MAX_URIS} addresses`);
  const fault = uris.map(findRedirectFault).find((each) => each !== null);
  if (fault !== undefined) throw new OAuthError("invalid_redirect_uri", fault);
  const plain = (text: string): string => text.replaceAll(UNPRINTABLE, "");
  // Cutting can leave half of a character.
  const shown = plain(plain(typeof name === "string" ? name : "").slice(0, MAX_NAME)).trim();
  const registration = { n: shown || "An MCP client", r: uris as string[] };
  return {
    client_id: PREFIX + toBase64Url(utf8(JSON.stringify(registration))),
    client_name: registration.n,
    redirect_uris: registration.r,
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
}

/** Returns the client with this id; null if it is none that this service could have registered. */
export function readClient(id: string): PublicClient | null {
  if (!id.startsWith(PREFIX)) return null;
  try {
    const value: unknown = JSON.parse(Buffer.from(id.slice(PREFIX.length), "base64url").toString());
    if (!isJsonObject(value as never)) return null;
    const { n, r } = value as JsonObject;
    // Anyone can write such an id, so it must be exactly the one that a registration would return.
    const { client_id, client_name } = registerClient({ client_name: n ?? "", redirect_uris: r ?? [] });
    return client_id === id ? { id, name: client_name as string, redirect_uris: r as string[] } : null;
  } catch {
    return null;
  }
}

/** Returns a short name of the client for the record. */
export const clientDigest = (id: string): string => sha256Hex(utf8(id)).slice(0, 32);

function findRedirectFault(uri: unknown): string | null {
  if (typeof uri !== "string" || uri.length > MAX_URI || /[^\x21-\x7e]/.test(uri) || !URL.canParse(uri))
    return "a redirect URI is not an address";
  const { protocol, hostname, hash, username, password } = new URL(uri);
  if (hash !== "" || uri.endsWith("#") || username !== "" || password !== "")
    return "a redirect URI has a fragment or a user name";
  const isAccepted =
    protocol === "https:" ||
    (protocol === "http:" && LOOPBACK.includes(hostname)) ||
    APP_SCHEMES.includes(protocol) ||
    /^[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+:$/.test(protocol);
  return isAccepted
    ? null
    : `a redirect URI must be https, http on a loopback address, or the scheme of an application`;
}

/** Whether a registered redirect URI covers this one. On a loopback address, the port is free (RFC 8252, 7.3). */
export function coversRedirect(registered: readonly string[], uri: string): boolean {
  const withoutPort = (text: string): string => {
    const url = new URL(text);
    if (url.protocol === "http:" && LOOPBACK.includes(url.hostname)) url.port = "";
    return url.href;
  };
  return (
    registered.includes(uri) ||
    (findRedirectFault(uri) === null && registered.some((each) => withoutPort(each) === withoutPort(uri)))
  );
}

/** Returns the host of a web application to which a redirect URI leads; null for a program on the user's machine. */
export const webHost = (uri: string): string | null => {
  const { protocol, hostname } = new URL(uri);
  return protocol === "https:" && !LOOPBACK.includes(hostname) ? hostname : null;
};
