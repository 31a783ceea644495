/** Verifies permits. A separate module, so that the client loads `jose` only when needed. */
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  jwtVerify,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from "jose";
import type { JsonObject } from "../../src/domain/json.ts";
import { MAX_PERMIT_LENGTH, findPermitFormatFault, PERMIT_ALGORITHMS, PERMIT_TYPE } from "../../src/domain/permit.ts";
import { computeActionDigest } from "../../src/domain/request.ts";
import {
  PermitRefused,
  type PermitClaims,
  type PermittedRequest,
  type PermitRefusedReason,
  type VerifyPermitOptions,
} from "./permit.ts";

const TEXTS = ["iss", "sub", "aud", "jti", "agent_id", "operation"] as const;
const DIGESTS = ["action_digest", "request_hash", "decision_hash"] as const;
const FORM_FAULTS = {
  malformed: "the permit's header or base64url encoding is malformed",
  wrong_algorithm: "permits are signed with Ed25519, but this one is not",
  wrong_type: `the permit's type is not ${PERMIT_TYPE}`,
} as const;
/** Maximum age of cached keys of the service, in milliseconds. The service sends the same value as `max-age`. */
const MAX_AGE = 60_000;
/** Minimum time between reloads for an unknown key. Milliseconds. */
const COOLDOWN_MS = 5_000;
/** The last second that a Date can represent. */
const LAST_SECOND = 8_640_000_000_000;
/** Maximum number of cached remote key sets. */
const MAX_SETS = 100;
const sets = new Map<string, JWTVerifyGetKey>();

export async function checkPermit(
  request: PermittedRequest,
  permit: string,
  { jwks, audience, issuer, clockTolerance = 5, now = Date.now }: VerifyPermitOptions,
): Promise<PermitClaims> {
  // Without an audience, a permit for any tool would be accepted.
  if (typeof audience !== "string" || audience === "")
    throw new TypeError("verifyPermit needs `audience`: the tool's own name");
  const at = now();
  if (!Number.isFinite(at) || !Number.isFinite(clockTolerance) || clockTolerance < 0)
    throw new TypeError("verifyPermit needs a time of day, and a `clockTolerance` of 0 seconds or more");
  if (typeof permit !== "string" || permit.length > MAX_PERMIT_LENGTH)
    throw new PermitRefused("malformed", "this is not a permit: a permit is a compact JWS of at most 8,192 characters");
  const formFault = findPermitFormatFault(permit);
  if (formFault !== null) throw new PermitRefused(formFault, FORM_FAULTS[formFault]);
  const digest = digestOf(request);
  const keys = await keysOf(jwks);
  let payload: Record<string, unknown>;
  try {
    ({ payload } = await jwtVerify(permit, keys, {
      algorithms: [...PERMIT_ALGORITHMS],
      typ: PERMIT_TYPE,
      audience,
      requiredClaims: [...TEXTS, ...DIGESTS, "iat", "exp"],
      currentDate: new Date(at),
      ...(issuer === undefined ? {} : { issuer }),
      // Applies to `nbf` and `exp`. The code below checks `exp` again, without a tolerance.
      clockTolerance,
    }));
  } catch (error) {
    throw refusalOf(error);
  }
  const claims = claimsOf(payload);
  if (claims === null || claims.aud !== audience)
    throw new PermitRefused("malformed", "the permit's claims are malformed");
  if (claims.exp * 1000 <= at)
    throw new PermitRefused("expired", `the permit ended at ${new Date(claims.exp * 1000).toISOString()}`);
  if (claims.iat * 1000 > at + clockTolerance * 1000)
    throw new PermitRefused(
      "not_yet_valid",
      `the permit was signed at ${new Date(claims.iat * 1000).toISOString()}, which is in the future; check the clocks`,
    );
  if (claims.action_digest !== digest)
    throw new PermitRefused("wrong_request", "the permit is for a different request than the one to run");
  return claims;
}

function digestOf({ agent_id, tool, operation, params = {} }: PermittedRequest): string {
  try {
    return computeActionDigest({ agent_id, tool, operation, params: params as JsonObject });
  } catch (cause) {
    throw new PermitRefused("unreadable_request", `the request has no canonical JSON: ${messageOf(cause)}`, { cause });
  }
}

async function keysOf(jwks: VerifyPermitOptions["jwks"]): Promise<JWTVerifyGetKey> {
  if (typeof jwks === "string" || jwks instanceof URL) return fetchKeySet(new URL(jwks));
  try {
    return createLocalJWKSet((typeof jwks === "function" ? await jwks() : jwks) as JSONWebKeySet);
  } catch (cause) {
    throw new PermitRefused("keys_unavailable", `the key set cannot be read: ${messageOf(cause)}`, { cause });
  }
}

function fetchKeySet(url: URL): JWTVerifyGetKey {
  const cachedKeySet = sets.get(url.href);
  if (cachedKeySet !== undefined) return cachedKeySet;
  if (sets.size >= MAX_SETS) sets.clear();
  const set = createRemoteJWKSet(url, { cacheMaxAge: MAX_AGE, cooldownDuration: COOLDOWN_MS });
  sets.set(url.href, set);
  return set;
}

/** Converts an error of jose to a PermitRefused with the matching reason. */
function refusalOf(cause: unknown): PermitRefused {
  const reason = reasonOf(cause);
  return new PermitRefused(
    reason,
    reason === "keys_unavailable"
      ? `the keys that check permits cannot be read: ${messageOf(cause)}`
      : `the permit is refused: ${messageOf(cause)}`,
    { cause },
  );
}

const CLAIMS: Readonly<Record<string, PermitRefusedReason>> = {
  typ: "wrong_type",
  iss: "wrong_issuer",
  aud: "wrong_audience",
  nbf: "not_yet_valid",
};

function reasonOf(error: unknown): PermitRefusedReason {
  if (error instanceof errors.JWTExpired) return "expired";
  if (error instanceof errors.JWTClaimValidationFailed)
    return error.reason === "check_failed" ? (CLAIMS[error.claim] ?? "malformed") : "malformed";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "bad_signature";
  if (error instanceof errors.JOSEAlgNotAllowed) return "wrong_algorithm";
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return "unknown_key";
  const isForm = [errors.JWSInvalid, errors.JWTInvalid, errors.JOSENotSupported].some((kind) => error instanceof kind);
  return isForm ? "malformed" : "keys_unavailable";
}

function claimsOf(payload: Record<string, unknown>): PermitClaims | null {
  const isTime = (value: unknown): boolean =>
    Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= LAST_SECOND;
  const right =
    [...TEXTS, ...DIGESTS].every((name) => typeof payload[name] === "string") &&
    isTime(payload["iat"]) &&
    isTime(payload["exp"]);
  return right ? (payload as unknown as PermitClaims) : null;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
