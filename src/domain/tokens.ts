/**
 * Approval tokens. Nothing about them is stored: a token is its claims and an HMAC over the claims
 * and the request hash, so it can be made again for whoever may see it and for nobody else.
 *
 *   apt1_<base64url of canonical JSON [action_id, approver, expires_at]>.<base64url HMAC-SHA256>
 *
 * An approval token (`apt1_`) is good beside the approver's key. A link token (`apl1_`) is sent to one
 * person and is good alone. Neither can be made from the other.
 */
import { canonicalBytes } from "./canonical.ts";
import { equalBytes, fromBase64Url, toBase64Url } from "./hash.ts";

export type TokenKind = "approval" | "link";

const FORMS: Readonly<Record<TokenKind, { prefix: string; domain: string }>> = {
  approval: { prefix: "apt1_", domain: "assent-approval/1" },
  link: { prefix: "apl1_", domain: "assent-approval-link/1" },
};

/** What a token is bound to. `expires_at` in milliseconds. */
export interface TokenClaims {
  action_id: string;
  request_hash: string;
  /** Principal it was made for. */
  approver: string;
  expires_at: number;
}

export type Mac = (message: Uint8Array) => Uint8Array;

function computeMac(kind: TokenKind, claims: TokenClaims, mac: Mac): Uint8Array {
  return mac(
    canonicalBytes([FORMS[kind].domain, claims.action_id, claims.request_hash, claims.approver, claims.expires_at]),
  );
}

export function makeToken(kind: TokenKind, claims: TokenClaims, mac: Mac): string {
  const payload = toBase64Url(canonicalBytes([claims.action_id, claims.approver, claims.expires_at]));
  return `${FORMS[kind].prefix}${payload}.${toBase64Url(computeMac(kind, claims, mac))}`;
}

export type TokenCheckResult = "ok" | "malformed" | "altered" | "other_action" | "other_approver";

/**
 * Whether `token` is the one for exactly these claims. Says nothing about the clock: the expiry it
 * is bound to is the action's, and that is tested by the statement that uses it.
 */
export function checkToken(kind: TokenKind, token: string, expected: TokenClaims, mac: Mac): TokenCheckResult {
  const parts = decodeToken(kind, token);
  if (parts === null) return "malformed";
  // Another action's token is named as such without its MAC being looked at: its request hash is
  // not at hand, and the answer is a refusal either way.
  if (parts.action_id !== expected.action_id) return "other_action";
  const claimed: TokenClaims = {
    action_id: parts.action_id,
    request_hash: expected.request_hash,
    approver: parts.approver,
    expires_at: parts.expires_at,
  };
  if (!equalBytes(parts.mac, computeMac(kind, claimed, mac))) return "altered";
  if (parts.approver !== expected.approver) return "other_approver";
  if (parts.expires_at !== expected.expires_at) return "altered";
  return "ok";
}

/** Whether it begins as tokens of this kind do. */
export function hasTokenPrefix(kind: TokenKind, token: string): boolean {
  return token.startsWith(FORMS[kind].prefix);
}

/** What a token says of itself, true or not; null when it is no token of this kind. */
export function decodeToken(
  kind: TokenKind,
  token: string,
): { action_id: string; approver: string; expires_at: number; mac: Uint8Array } | null {
  if (!hasTokenPrefix(kind, token) || token.length > 2048) return null;
  const [payload, signature, ...rest] = token.slice(FORMS[kind].prefix.length).split(".");
  if (payload === undefined || signature === undefined || rest.length > 0) return null;
  try {
    const mac = fromBase64Url(signature);
    const claims: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(fromBase64Url(payload)));
    if (!Array.isArray(claims) || claims.length !== 3 || mac.length !== 32) return null;
    const [action_id, approver, expires_at] = claims as unknown[];
    if (typeof action_id !== "string" || typeof approver !== "string" || typeof expires_at !== "number") return null;
    // Only what `makeToken` could have written: half a surrogate pair or 1e400 has no canonical form to take a MAC of.
    if (toBase64Url(canonicalBytes([action_id, approver, expires_at])) !== payload) return null;
    return { action_id, approver, expires_at, mac };
  } catch {
    return null;
  }
}
