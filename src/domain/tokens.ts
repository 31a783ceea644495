/**
 * Approval tokens. Tokens are not stored. A token consists of the action, the approver, the expiry and an HMAC. The
 * HMAC also covers the request hash, the questions, the preview and the pinned facts. The service can create the same token again.
 *
 *   apt1_<base64url of canonical JSON [action_id, approver, expires_at]>.<base64url HMAC-SHA256>
 *   apl1_<base64url of canonical JSON [action_id, approver, expires_at, address]>.<base64url HMAC-SHA256>
 *
 * An approval token (`apt1_`) is valid only together with the approver's key. A link token (`apl1_`) is sent to one
 * person and is valid without a key. Features define more kinds. No kind of token can be derived from another.
 */
import { canonicalBytes } from "./canonical.ts";
import { equalBytes, fromBase64Url, sha256Hex, toBase64Url } from "./hash.ts";

/** The prefix of a kind of token, and a text that its HMAC covers, so that no two kinds have the same HMAC. */
export interface TokenForm {
  readonly prefix: string;
  readonly domain: string;
}

const FORMS = {
  approval: { prefix: "apt1_", domain: "assent-approval/1" },
  link: { prefix: "apl1_", domain: "assent-approval-link/1" },
};

/** A kind of token of one action, or the form of a feature's tokens. */
type TokenKind = keyof typeof FORMS | TokenForm;

const formOf = (kind: TokenKind): TokenForm => (typeof kind === "string" ? FORMS[kind] : kind);

/** The values that a token is bound to. `expires_at` is in milliseconds. */
export interface TokenClaims {
  action_id: string;
  request_hash: string;
  /**
   * `questionsDigest` of the questions that the approver saw. Absent in links, which always display the current state.
   */
  questions?: string | null;
  /** Commitment to the preview that the approver saw; null if there was no preview. Absent in links. */
  preview?: string | null;
  /** Commitment to the pinned facts that the approver saw; absent without pins, and in links. */
  pins?: string | null;
  /** The principal that the token was created for. */
  approver: string;
  expires_at: number;
  /** In links: `digestAddress` of the address to which the link was sent. */
  address?: string;
}

/** The part of a token that its holder can read. */
type ReadableClaims = Pick<TokenClaims, "action_id" | "approver" | "expires_at" | "address">;

/** Returns the digest of a person's address, such as a mailbox, to which a notifier sends links. */
export function digestAddress(notifier: string, to: string): string {
  return sha256Hex(canonicalBytes([notifier, to])).slice(0, 32);
}

export type ComputeMac = (message: Uint8Array) => Uint8Array;

function computeMac(kind: TokenKind, claims: TokenClaims, mac: ComputeMac): Uint8Array {
  return mac(
    canonicalBytes([
      formOf(kind).domain,
      claims.action_id,
      claims.request_hash,
      claims.questions ?? null,
      claims.preview ?? null,
      claims.approver,
      claims.expires_at,
      claims.address ?? null,
      claims.pins ?? null,
    ]),
  );
}

const payloadOf = ({ action_id, approver, expires_at, address }: ReadableClaims): string =>
  toBase64Url(canonicalBytes([action_id, approver, expires_at, ...(address === undefined ? [] : [address])]));

export function makeToken(kind: TokenKind, claims: TokenClaims, mac: ComputeMac): string {
  return `${formOf(kind).prefix}${payloadOf(claims)}.${toBase64Url(computeMac(kind, claims, mac))}`;
}

export type TokenCheckResult = "ok" | "malformed" | "altered" | "other_action" | "other_approver";

/**
 * Checks that `token` matches exactly these claims, and that its address is genuine. Does not compare `expires_at` with the clock: it is the action's
 * deadline, which the update that records the vote checks.
 */
export function checkToken(kind: TokenKind, token: string, expected: TokenClaims, mac: ComputeMac): TokenCheckResult {
  const parts = decodeToken(kind, token);
  if (parts === null) return "malformed";
  // The request hash of the other action is not known here, so return this fault without verifying the MAC. The token
  // is rejected in any case.
  if (parts.action_id !== expected.action_id) return "other_action";
  const claimed: TokenClaims = {
    action_id: parts.action_id,
    request_hash: expected.request_hash,
    questions: expected.questions ?? null,
    preview: expected.preview ?? null,
    pins: expected.pins ?? null,
    approver: parts.approver,
    expires_at: parts.expires_at,
    ...(parts.address === undefined ? {} : { address: parts.address }),
  };
  if (!equalBytes(parts.mac, computeMac(kind, claimed, mac))) return "altered";
  if (parts.approver !== expected.approver) return "other_approver";
  if (parts.expires_at !== expected.expires_at) return "altered";
  return "ok";
}

/** Decodes a token's claims without verifying them; returns null for a malformed token. */
export function decodeToken(kind: TokenKind, token: string): (ReadableClaims & { mac: Uint8Array }) | null {
  const { prefix } = formOf(kind);
  if (!token.startsWith(prefix) || token.length > 2048) return null;
  const [payload, signature, ...rest] = token.slice(prefix.length).split(".");
  if (payload === undefined || signature === undefined || rest.length > 0) return null;
  try {
    const mac = fromBase64Url(signature);
    const claims: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(fromBase64Url(payload)));
    if (!Array.isArray(claims) || claims.length < 3 || claims.length > 4 || mac.length !== 32) return null;
    const [action_id, approver, expires_at, address] = claims as unknown[];
    if (typeof action_id !== "string" || typeof approver !== "string" || typeof expires_at !== "number") return null;
    if (address !== undefined && (kind !== "link" || typeof address !== "string")) return null;
    const readable = { action_id, approver, expires_at, ...(typeof address === "string" ? { address } : {}) };
    // Accept only the canonical form. Values such as lone surrogates and 1e400 have no canonical form.
    return payloadOf(readable) === payload ? { ...readable, mac } : null;
  } catch {
    return null;
  }
}
