/**
 * An OpenID Connect provider on loopback: oidc-provider with its development pages, which accept any password. It also
 * exchanges the ID tokens of MCP clients for ID-JAGs (RFC 8693).
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from "jose";
import Provider from "oidc-provider";

export interface IdentityProvider {
  issuer: string;
  /** Claims of each account, by the name that a person enters to sign in. */
  readonly accounts: Map<string, Record<string, unknown>>;
  /** Address to which MCP clients of tests return. Answers every request. */
  callback: string;
  /** Status with which it answers every exchange; null to exchange. */
  exchangeStatus: number | null;
  close(): Promise<void>;
}

/** The MCP client, at this provider and at the authorization server to which it takes its ID-JAGs. */
export const MCP_CLIENT = {
  client_id: "mcp-client",
  client_secret: "the secret of the client here",
} as const;
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

/** Starts the provider. @param redirectUri returns the address that the provider redirects to after a sign-in */
export async function startIdentityProvider(redirectUri: () => string): Promise<IdentityProvider> {
  const accounts = new Map<string, Record<string, unknown>>();
  let handle: ReturnType<Provider["callback"]> | null = null;
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/callback") === true) response.end("done");
    else void handle?.(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  const { publicKey, privateKey } = await generateKeyPair("RS256", { extractable: true });
  const about = { kid: "first", alg: "RS256", use: "sig" };
  const keys = createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), ...about }] });
  const { client_id, client_secret } = MCP_CLIENT;
  const callback = `${issuer}/callback`;
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), ...about }] },
    clients: [
      { client_id: "assent", client_secret: "secret", redirect_uris: [redirectUri()] },
      {
        client_id,
        client_secret,
        redirect_uris: [callback],
        token_endpoint_auth_method: "client_secret_post",
        grant_types: ["authorization_code", EXCHANGE],
      },
    ],
    claims: { openid: ["sub"], profile: ["name", "groups"] },
    pkce: { required: () => true },
    cookies: { keys: ["a key of the test"] },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: async () => ({ sub, ...accounts.get(sub) }),
    }),
  });
  provider.registerGrantType(
    EXCHANGE,
    async (context) => {
      const params = context.oidc.params as Record<string, string>;
      if (made.exchangeStatus !== null) {
        context.status = made.exchangeStatus;
        context.body = { error: "access_denied" };
        return;
      }
      const { payload } = await jwtVerify(params["subject_token"] as string, keys, { issuer, audience: client_id });
      const claims = { client_id, resource: params["resource"], jti: crypto.randomUUID() };
      const signed = new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "first", typ: "oauth-id-jag+jwt" });
      signed
        .setIssuer(issuer)
        .setSubject(payload.sub as string)
        .setAudience(params["audience"] as string);
      signed.setIssuedAt().setExpirationTime("5m");
      const access_token = await signed.sign(privateKey);
      context.body = { issued_token_type: ID_JAG, access_token, token_type: "N_A", expires_in: 300 };
    },
    ["requested_token_type", "audience", "resource", "scope", "subject_token", "subject_token_type"],
  );
  handle = provider.callback();
  const made: IdentityProvider = {
    issuer,
    accounts,
    callback,
    exchangeStatus: null,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return made;
}
