/**
 * Permits: a compact JWS (RFC 7515) with EdDSA (RFC 8037), so that any tool can check one with a
 * stock library and the log's public key. A permit is a function of the action alone: it is not
 * stored, and it can be used once because starting is a compare-and-set of the action's state.
 */
import { fromBase64Url, toBase64Url, toHex, utf8 } from "./hash.ts";

/** What a permit says. Times in milliseconds, whole seconds. */
export interface PermitClaims {
  issuer: string;
  action_id: string;
  agent_id: string;
  tool: string;
  operation: string;
  request_hash: string;
  decision_hash: string;
  issued_at: number;
  expires_at: number;
}

/** A permit's end: whole seconds, because JWT times are. */
export function permitTimes(now: number, validSeconds: number): { issued_at: number; expires_at: number } {
  const issued_at = Math.floor(now / 1000) * 1000;
  return { issued_at, expires_at: issued_at + validSeconds * 1000 };
}

function signingInput(claims: PermitClaims, publicKey: Uint8Array): string {
  const payload = {
    iss: claims.issuer,
    sub: claims.action_id,
    aud: claims.tool,
    iat: claims.issued_at / 1000,
    exp: claims.expires_at / 1000,
    jti: claims.decision_hash,
    agent_id: claims.agent_id,
    operation: claims.operation,
    request_hash: claims.request_hash,
  };
  return `${headerOf(publicKey)}.${toBase64Url(utf8(JSON.stringify(payload)))}`;
}

const headers = new WeakMap<Uint8Array, string>();

function headerOf(publicKey: Uint8Array): string {
  let header = headers.get(publicKey);
  if (header === undefined) {
    header = toBase64Url(
      utf8(JSON.stringify({ alg: "EdDSA", typ: "assent-permit+jwt", kid: toHex(publicKey.subarray(0, 8)) })),
    );
    headers.set(publicKey, header);
  }
  return header;
}

export async function makePermit(
  claims: PermitClaims,
  publicKey: Uint8Array,
  sign: (message: Uint8Array) => Promise<Uint8Array>,
): Promise<string> {
  const input = signingInput(claims, publicKey);
  return `${input}.${toBase64Url(await sign(utf8(input)))}`;
}

/** Whether `permit` is the one for exactly these claims. Says nothing about the clock. */
export function checkPermit(
  permit: string,
  claims: PermitClaims,
  publicKey: Uint8Array,
  verify: (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean,
): boolean {
  const dot = permit.lastIndexOf(".");
  const input = signingInput(claims, publicKey);
  if (dot < 0 || permit.slice(0, dot) !== input) return false;
  try {
    return verify(publicKey, utf8(input), fromBase64Url(permit.slice(dot + 1)));
  } catch {
    return false;
  }
}
