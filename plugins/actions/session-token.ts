/**
 * Session tokens of agents. A hook, a proxy or another caller with the scope `sessions:issue` requests a token for a
 * key. It sends the token with the actions of that key. The agent cannot create a token, so it cannot leave its
 * session. Tokens are not stored: a token is its claims and an HMAC over them.
 *
 *   ses1_<base64url of canonical JSON [session_id, key_id, issued_by, expires_at]>.<base64url HMAC-SHA256>
 */
import { canonicalBytes, equalBytes, fromBase64Url, toBase64Url, toHex } from "../../src/core.ts";

type ComputeMac = (message: Uint8Array) => Uint8Array;

const PREFIX = "ses1_";
const DOMAIN = "assent-session/1";
const MAX_LENGTH = 1024;
/** Hex digits of a session's id. */
const ID_DIGITS = 32;

interface SessionClaims {
  session_id: string;
  /** The key whose actions belong to the session. */
  key_id: string;
  /** The key that requested the session. */
  issued_by: string;
  /** Expiry of the token. Milliseconds. */
  expires_at: number;
}

/**
 * Returns the id of the session with a name. An issuer always gets the same session for the same key and name, so that
 * a restarted process continues the session.
 */
export function computeSessionId(issuedBy: string, keyId: string, name: string, mac: ComputeMac): string {
  return toHex(mac(canonicalBytes([DOMAIN, "id", issuedBy, keyId, name]))).slice(0, ID_DIGITS);
}

const listClaims = ({ session_id, key_id, issued_by, expires_at }: SessionClaims) => [
  session_id,
  key_id,
  issued_by,
  expires_at,
];

const macOf = (claims: SessionClaims, mac: ComputeMac): Uint8Array =>
  mac(canonicalBytes([DOMAIN, "token", ...listClaims(claims)]));

/** Creates the token for the claims. */
export function makeSessionToken(claims: SessionClaims, mac: ComputeMac): string {
  return `${PREFIX}${toBase64Url(canonicalBytes(listClaims(claims)))}.${toBase64Url(macOf(claims, mac))}`;
}

/**
 * Returns the claims of a token that this service issued; null for any other string. Does not check the expiry or the
 * key.
 */
export function readSessionToken(token: string, mac: ComputeMac): SessionClaims | null {
  if (!token.startsWith(PREFIX) || token.length > MAX_LENGTH) return null;
  const [payload, signature, ...rest] = token.slice(PREFIX.length).split(".");
  if (payload === undefined || signature === undefined || rest.length > 0) return null;
  try {
    const parts = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(fromBase64Url(payload))) as unknown[];
    const [session_id, key_id, issued_by, expires_at] = parts;
    const claims = { session_id, key_id, issued_by, expires_at } as SessionClaims;
    if (!Array.isArray(parts) || parts.length !== 4 || !Number.isSafeInteger(expires_at)) return null;
    if (toBase64Url(canonicalBytes(listClaims(claims))) !== payload) return null;
    return equalBytes(fromBase64Url(signature), macOf(claims, mac)) ? claims : null;
  } catch {
    return null;
  }
}
