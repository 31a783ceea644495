/** Verifies the token of a workload. The content of an unverified token is only used to select its issuer. */
import { fromBase64Url, type JsonObject, readJsonObject, UnreadableRequest } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import type { JWTPayload, JWTVerifyGetKey } from "./jose.ts";
import { actsForUser, type IssuerOptions } from "./issuer-options.ts";

const MAX_BYTES = 8192;
/** Maximum difference between the clocks of the issuer and the service. Seconds. */
const CLOCK_TOLERANCE = 300;

/**
 * The accepted values of `typ`, in lower case; null means that `typ` is absent. Tokens of other types are for other
 * purposes.
 */
const TYPES: Readonly<Record<IssuerOptions["platform"], readonly (string | null)[]>> = {
  kubernetes: [null, "jwt"],
  "github-actions": ["jwt"],
  spiffe: [null, "jwt", "jose"],
  "id-jag": ["oauth-id-jag+jwt"],
  // RFC 9068, section 2.1. An ID token has another type.
  oauth: ["at+jwt"],
};

export interface Issuer {
  options: IssuerOptions;
  keys: IssuerKeys;
}

/** A token whose signature has not been verified yet. */
interface ReadToken {
  header: JsonObject;
  payload: JsonObject;
}

export interface VerifiedToken {
  issuer: Issuer;
  payload: JsonObject;
  /** Expiry of the token, including the tolerated clock difference. Milliseconds. */
  expires_at: number;
}

/**
 * Verifies a token. Returns null if the value is not a JWT. Throws INVALID_CREDENTIAL if the token is not valid, and
 * WORKLOAD_IDENTITY_KEYS_UNAVAILABLE if the issuer's keys could not be read.
 * @param now milliseconds since the epoch
 */
export async function verifyToken(
  token: string,
  issuers: readonly Issuer[],
  now: number,
): Promise<VerifiedToken | null> {
  const read = readToken(token);
  if (read === null) return null;
  const { header, payload } = read;
  const issuer = issuers.find(({ options }) => isIssuedBy(options, payload));
  if (issuer === undefined)
    throw invalidToken(`no issuer ${JSON.stringify(payload["iss"] ?? null).slice(0, 200)} is configured`);
  const { options } = issuer;
  const type = typeof header["typ"] === "string" ? header["typ"].toLowerCase().replace(/^application\//, "") : null;
  if ((header["typ"] !== undefined && type === null) || !TYPES[options.platform].includes(type))
    throw invalidToken(`a token of the type ${type?.slice(0, 40) ?? "none"} is not one of ${options.platform}`);
  await verifySignature(token, issuer, now);
  assertClaims(options, payload, now);
  return { issuer, payload, expires_at: ((payload["exp"] as number) + CLOCK_TOLERANCE) * 1000 };
}

/** Parses both JSON parts strictly, because two parsers could read different values from a duplicate member. */
function readToken(token: string): ReadToken | null {
  const [head = "", body = ""] = token.split(".");
  if (!isJoseHeader(head)) return null;
  if (token.length > MAX_BYTES) throw invalidToken(`it has more than ${MAX_BYTES} bytes`);
  try {
    return { header: readJsonObject(fromBase64Url(head)), payload: readJsonObject(fromBase64Url(body)) };
  } catch (error) {
    if (!(error instanceof UnreadableRequest) && !(error instanceof RangeError)) throw error;
    throw invalidToken(error.message.replace("the body", "its content"));
  }
}

/** Returns true if the string has the form of a JOSE header. If not, the value could be an API key. */
function isJoseHeader(text: string): boolean {
  try {
    const header: unknown = JSON.parse(Buffer.from(text.slice(0, MAX_BYTES), "base64url").toString());
    return typeof header === "object" && header !== null && "alg" in header;
  } catch {
    return false;
  }
}

function isIssuedBy({ platform, issuer }: IssuerOptions, { iss, sub }: JsonObject): boolean {
  if (platform !== "spiffe") return iss === issuer;
  // The subject of a JWT-SVID contains its trust domain. The specification does not require `iss`.
  return typeof sub === "string" && sub.startsWith(`${issuer}/`);
}

async function verifySignature(token: string, { options, keys }: Issuer, now: number): Promise<JWTPayload> {
  const { joseErrors, jwtVerify } = await import("./jose.ts");
  const verify = async (find: JWTVerifyGetKey): Promise<JWTPayload> => {
    const { payload } = await jwtVerify(token, find, {
      audience: options.audience,
      algorithms: options.algorithms,
      clockTolerance: CLOCK_TOLERANCE,
      currentDate: new Date(now),
      requiredClaims: ["exp", "sub", "aud"],
    });
    return payload;
  };
  try {
    try {
      return await verify(await keys.current());
    } catch (error) {
      // The issuer may have rotated its key, so read the keys again.
      if (!(error instanceof joseErrors.JWKSNoMatchingKey) || !(await keys.refresh())) throw error;
      return await verify(await keys.current());
    }
  } catch (error) {
    if (error instanceof Refusal) throw error;
    // Reject the token after any other error. For example, a key that cannot be imported verifies nothing.
    throw invalidToken(error instanceof Error ? error.message : "it cannot be verified");
  }
}

/** Makes checks that are stricter than the JWT standard. */
function assertClaims({ platform, audience, max_lifetime_seconds }: IssuerOptions, payload: JsonObject, now: number) {
  const { sub, aud, exp, iat, jti, client_id, cnf } = payload;
  if (typeof sub !== "string" || sub === "" || sub.length > 500)
    throw invalidToken("its `sub` must be a string of at most 500 characters");
  // Reject several audiences, because another service among them could replay the token to this service.
  if (aud !== audience && !(Array.isArray(aud) && aud.length === 1 && aud[0] === audience))
    throw invalidToken(`its \`aud\` must be ${JSON.stringify(audience)} only`);
  if (iat !== undefined && (typeof iat !== "number" || iat > now / 1000 + CLOCK_TOLERANCE))
    throw invalidToken("its `iat` is in the future");
  if ((exp as number) - (iat ?? now / 1000) > max_lifetime_seconds)
    throw invalidToken(`it is valid for longer than ${max_lifetime_seconds} seconds`);
  if (cnf !== undefined) throw invalidToken("it is bound to a key (`cnf`), and cannot be used as a bearer token");
  if (!actsForUser(platform)) return;
  if ([client_id, jti].some((text) => typeof text !== "string" || text === "") || iat === undefined)
    throw invalidToken(`a token of ${platform} needs \`client_id\`, \`jti\` and \`iat\``);
}

export function invalidToken(why: string): Refusal {
  return new Refusal("INVALID_CREDENTIAL", `the workload token is not valid: ${why}`, {
    headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' },
  });
}
