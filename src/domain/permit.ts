/**
 * Permits. A permit is a compact JWS (RFC 7515) with Ed25519 (RFC 9864) and a JWT payload (RFC 7519). Any tool can
 * verify it with a stock library and the published keys. docs/permits.md defines the claims. Permits are not stored. A
 * permit starts an action only once, because starting is a compare-and-set on the action's status.
 */
import type { ActorClaim } from "./action-authority.ts";
import { fromBase64Url, sha256, toBase64Url, utf8 } from "./hash.ts";
import { decodeUtf8, parseJson, type JsonObject } from "./json.ts";

export const PERMIT_TYPE = "assent-permit+jwt";
/** RFC 9864 replaces the name `EdDSA`, but stock libraries still use the old name. */
export const PERMIT_ALGORITHMS: readonly string[] = ["Ed25519", "EdDSA"];
/** Maximum length in characters, which suffices for names of 256 characters. */
export const MAX_PERMIT_LENGTH = 8192;

/** Maximum validity of a permit. Seconds. */
export const MAX_PERMIT_SECONDS = 86_400;

/** The claims about the action, which are the same in all of its permits. */
export interface PermitSubject {
  issuer: string;
  action_id: string;
  agent_id: string;
  tool: string;
  operation: string;
  /** SHA-256 of canonical `{agent_id, operation, params, tool}` in hex, which the tool can recompute. */
  action_digest: string;
  /** Digest of the whole request, including `context`. */
  request_hash: string;
  /** The authority under which the agent acts, with the agents that gave it; absent if it acts under none. */
  authority?: { id: string; act: ActorClaim };
}

/** The claims about this permit. Times are in milliseconds, rounded down to whole seconds. */
export interface PermitTerms {
  /** A random, unique id. */
  id: string;
  /** Leaf hash of the entry that justifies the permit: the decision, or the latest redecision. */
  decision_hash: string;
  issued_at: number;
  expires_at: number;
}

export interface PermitKey {
  /** `permitKeyId` of the public key. */
  kid: string;
  /** The key as 32 raw bytes. */
  publicKey: Uint8Array;
}

export type PermitFault =
  /** The encoding, the header or the type of a claim is invalid. */
  | "malformed"
  | "unknown_key"
  | "bad_signature"
  /** The permit is for a different action, tool, agent or log. */
  | "other_subject";

/** Returns the key's RFC 7638 thumbprint, base64url. */
export function permitKeyId(publicKey: Uint8Array): string {
  return toBase64Url(sha256(utf8(`{"crv":"Ed25519","kty":"OKP","x":"${toBase64Url(publicKey)}"}`)));
}

/**
 * Signs a permit. Rounds `issued_at` and `expires_at` down to whole seconds. Throws RangeError if the permit is longer
 * than `MAX_PERMIT_LENGTH`.
 */
export async function signPermit(
  subject: PermitSubject,
  grant: PermitTerms,
  kid: string,
  sign: (message: Uint8Array) => Promise<Uint8Array>,
): Promise<string> {
  const header = { alg: "Ed25519", typ: PERMIT_TYPE, kid };
  const payload = {
    iss: subject.issuer,
    sub: subject.action_id,
    aud: subject.tool,
    iat: Math.floor(grant.issued_at / 1000),
    exp: Math.floor(grant.expires_at / 1000),
    jti: grant.id,
    agent_id: subject.agent_id,
    operation: subject.operation,
    action_digest: subject.action_digest,
    request_hash: subject.request_hash,
    decision_hash: grant.decision_hash,
    ...(subject.authority === undefined ? {} : { act: subject.authority.act, authority: subject.authority.id }),
  };
  const input = `${encode(header)}.${encode(payload)}`;
  const permit = `${input}.${toBase64Url(await sign(utf8(input)))}`;
  if (permit.length > MAX_PERMIT_LENGTH)
    throw new RangeError(`a permit of ${permit.length} characters exceeds ${MAX_PERMIT_LENGTH}`);
  return permit;
}

/**
 * Checks that `permit` is for `subject` and that one of `keys` signed it. Returns the fault; null if there is none. Does
 * not check the permit's times. Verifies the signature before it reads any claim. Ignores unknown claims (RFC 7519
 * section 4) and rejects unknown header members.
 */
export function checkPermit(
  permit: string,
  subject: PermitSubject,
  keys: readonly PermitKey[],
  verify: (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean,
): PermitFault | null {
  if (findPermitFormatFault(permit) !== null) return "malformed";
  const parts = permit.split(".");
  const header = decode(parts[0]);
  const claims = decode(parts[1]);
  const signature = bytesOf(parts[2]);
  if (header === null || claims === null || signature?.length !== 64) return "malformed";
  const key = keys.find(({ kid }) => kid === header["kid"]);
  if (key === undefined) return "unknown_key";
  if (!verify(key.publicKey, utf8(`${parts[0]}.${parts[1]}`), signature)) return "bad_signature";
  if (!hasValidClaims(claims)) return "malformed";
  const same =
    claims.iss === subject.issuer &&
    claims.sub === subject.action_id &&
    claims.aud === subject.tool &&
    claims.agent_id === subject.agent_id &&
    claims.operation === subject.operation &&
    claims.action_digest === subject.action_digest &&
    claims.request_hash === subject.request_hash &&
    claims.authority === subject.authority?.id;
  return same ? null : "other_subject";
}

/**
 * Checks the format and the header of a permit. Stricter than JWT libraries, which accept unknown and duplicate header
 * members and non-canonical base64url.
 */
export function findPermitFormatFault(permit: string): "malformed" | "wrong_algorithm" | "wrong_type" | null {
  const parts = permit.length > MAX_PERMIT_LENGTH ? [] : permit.split(".");
  const header = parts.length === 3 ? decode(parts[0]) : null;
  if (header === null) return "malformed";
  const { alg, typ, kid, ...others } = header;
  if (!PERMIT_ALGORITHMS.includes(alg as string)) return "wrong_algorithm";
  if (typ !== PERMIT_TYPE) return "wrong_type";
  const isWhole = typeof kid === "string" && Object.keys(others).length === 0;
  return isWhole && decode(parts[1]) !== null && bytesOf(parts[2]) !== null ? null : "malformed";
}

/** Returns the leaf hash of the entry of a checked permit (`decision_hash`), and how long the permit is valid. */
export function readCheckedPermit(permit: string): { decision_hash: string; valid_ms: number } {
  const claims = decode(permit.split(".")[1]);
  if (claims === null || !hasValidClaims(claims)) throw new TypeError("call this only for a permit that was checked");
  return { decision_hash: claims.decision_hash, valid_ms: (claims.exp - claims.iat) * 1000 };
}

const DIGESTS = ["action_digest", "request_hash", "decision_hash"];
const HEX_DIGEST = /^[0-9a-f]{64}$/;

interface Claims {
  iss: string;
  sub: string;
  aud: string;
  iat: number;
  nbf?: number;
  exp: number;
  jti: string;
  agent_id: string;
  operation: string;
  action_digest: string;
  request_hash: string;
  decision_hash: string;
  authority?: string;
}

function hasValidClaims(claims: JsonObject): claims is JsonObject & Claims {
  return (
    ["iss", "sub", "aud", "jti", "agent_id", "operation", ...DIGESTS].every(
      (name) => typeof claims[name] === "string",
    ) &&
    DIGESTS.every((name) => HEX_DIGEST.test(claims[name] as string)) &&
    isTime(claims["iat"]) &&
    isTime(claims["exp"]) &&
    (claims["nbf"] === undefined || isTime(claims["nbf"]))
  );
}

function isTime(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function encode(value: object): string {
  return toBase64Url(utf8(JSON.stringify(value)));
}

function decode(part: string | undefined): JsonObject | null {
  const text = decodeUtf8(bytesOf(part) ?? new Uint8Array(0));
  try {
    const value = text === null ? null : parseJson(text, { maxDepth: 16, maxValues: 256 });
    return typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** Decodes canonical base64url. Returns null for any other string. */
function bytesOf(part: string | undefined): Uint8Array | null {
  try {
    return fromBase64Url(part ?? "");
  } catch {
    return null;
  }
}
