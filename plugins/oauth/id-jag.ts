/**
 * Verifies ID-JAGs: assertions with which an identity provider allows an MCP client to act for a user
 * (draft-ietf-oauth-identity-assertion-authz-grant).
 */
import { type CoreHost, findUserByIdentity, type JsonObject, sha256Hex, userState, utf8 } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import {
  assertDistinct,
  assertFreeClaims,
  IssuerKeys,
  selectNamedClaims,
  type TokenRules,
  verifyToken,
} from "../workload-identity/api.ts";
import { type GrantIssuer, OAuthError } from "./schemas.ts";

type Rules = TokenRules & Pick<GrantIssuer, "claims" | "clients">;

/** A verified ID-JAG. */
export interface VerifiedGrant {
  issuer: string;
  user_id: string;
  resource: string;
  claims: JsonObject;
  /** Digest that is the same each time this grant is presented. */
  used: string;
  /** End of its validity, with the tolerated clock difference. Milliseconds, of the time of day. */
  expires_at: number;
}

/** Returns a function that verifies the ID-JAG of an authenticated client. It throws OAuthError. */
export function createGrantVerifier(host: CoreHost, configured: readonly GrantIssuer[]) {
  for (const key of ["id", "issuer"] as const) assertDistinct(configured, key, `issuers have the ${key}`);
  for (const issuer of configured) {
    assertDistinct(issuer.clients, "id", `clients of the issuer "${issuer.id}" have the id`);
    assertFreeClaims(issuer, ["issuer", "subject", "client_id", "resource"]);
  }
  const keys = new Map(
    configured.map(({ id, keys: source }) => [
      id,
      new IssuerKeys({ id, source, isBundle: false, clock: host.clock, log: host.log }),
    ]),
  );
  return async (assertion: string, clientId: string, audience: string): Promise<VerifiedGrant> => {
    const issuers = configured.map((each) => ({
      options: { ...each, platform: "id-jag", audience } satisfies Rules,
      keys: keys.get(each.id) as IssuerKeys,
    }));
    const verified = await translated(() => verifyToken<Rules>(assertion, issuers, host.timeOfDay()));
    if (verified === null) throw invalid("it is not a JWT");
    const { issuer, payload, expires_at } = verified;
    const { sub, jti, client_id, resource } = payload as Record<string, string>;
    if (client_id !== clientId) throw invalid("it was issued to another client");
    if (!issuer.options.clients.some(({ id }) => id === clientId))
      throw invalid(`the client is not one of the issuer ${issuer.options.id}`);
    if (typeof resource !== "string") throw invalid("its resource must be one address");
    const user = findUserByIdentity(await host.state(userState), issuer.options.issuer, sub as string);
    if (user === null) throw invalid("its user has never signed in to Assent with the same issuer and subject");
    return {
      issuer: issuer.options.id,
      user_id: user.id,
      resource,
      claims: { ...(await translated(async () => selectNamedClaims(issuer.options, payload))), client_id, resource },
      used: sha256Hex(utf8(JSON.stringify(["id-jag", issuer.options.issuer, jti]))),
      expires_at,
    };
  };
}

const invalid = (why: string): OAuthError => new OAuthError("invalid_grant", `the assertion is not valid: ${why}`);

async function translated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RangeError) throw invalid(error.message);
    if (!(error instanceof Refusal)) throw error;
    if (error.kind.status === 503) throw new OAuthError("temporarily_unavailable", error.message);
    throw invalid(error.message.replace("the workload token is not valid: ", ""));
  }
}
