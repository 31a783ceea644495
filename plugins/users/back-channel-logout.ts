/** OpenID Connect Back-Channel Logout 1.0: ends sessions when the provider ends a login. */
import { type CoreHost, isJsonObject, type JsonValue, sha256Hex, utf8 } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import { markValueUsed } from "./challenges.ts";
import { ERRORS } from "./user-errors.ts";
import { MAX_LOGOUT_TOKEN_SECONDS, type Provider } from "./provider.ts";
import type { Sessions } from "./sessions.ts";

const EVENT = "http://schemas.openid.net/event/backchannel-logout";

/**
 * Ends the sessions that a logout token identifies. Throws USERS_LOGOUT_INVALID if the token is not valid or was used before,
 * and USERS_PROVIDER_UNAVAILABLE if it cannot be verified now.
 * @param form body of the request: `logout_token=…`
 */
export async function endSessionsByLogoutToken(
  host: CoreHost,
  sessions: Sessions,
  provider: Provider,
  form: string,
): Promise<void> {
  const [token, ...more] = new URLSearchParams(form).getAll("logout_token");
  if (token === undefined || more.length > 0) throw invalidRefusal("the body must have one logout_token");
  const claims = await provider.verifyLogoutToken(token);
  const { events, jti, iat = 0 } = claims;
  if (typeof jti !== "string" || jti === "") throw invalidRefusal("the claim jti is not a string");
  const event = isJsonObject(events as JsonValue) ? (events as Record<string, unknown>)[EVENT] : undefined;
  if (typeof event !== "object" || event === null)
    throw invalidRefusal("the claim events does not contain a back-channel logout");
  // Do not accept an ID token as a logout token. Only ID tokens have a nonce.
  if (Object.hasOwn(claims, "nonce")) throw invalidRefusal("a logout token has no nonce");
  const [sub, sid] = [nameIn(claims, "sub"), nameIn(claims, "sid")];
  if (sub === null && sid === null) throw invalidRefusal("the token has neither sub nor sid");
  const used = `logout-${sha256Hex(utf8(JSON.stringify([provider.options.issuer, jti])))}`;
  const isNew = await host.ledger.transact(async (tx) => {
    const isFirst = await markValueUsed(host, tx, used, (iat + MAX_LOGOUT_TOKEN_SECONDS) * 1000);
    if (isFirst) await sessions.endLogin(tx, provider.options.id, { sub, sid });
    return isFirst;
  });
  if (!isNew) throw invalidRefusal("it was used before");
}

function nameIn(claims: Record<string, unknown>, name: "sub" | "sid"): string | null {
  if (!Object.hasOwn(claims, name)) return null;
  const value = claims[name];
  if (typeof value === "string" && value !== "") return value;
  throw invalidRefusal(`the claim ${name} is not a string`);
}

function invalidRefusal(detail: string): Refusal {
  return new Refusal(ERRORS.LOGOUT_INVALID, `the logout token is not valid: ${detail}`);
}
