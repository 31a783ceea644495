/** An OpenID Connect provider on loopback: oidc-provider with its development pages, which accept any password. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export interface IdentityProvider {
  issuer: string;
  /** Claims of each account, by the name that a person enters to sign in. */
  readonly accounts: Map<string, Record<string, unknown>>;
  close(): Promise<void>;
}

/** Starts the provider. @param redirectUri returns the address that the provider redirects to after a sign-in */
export async function startIdentityProvider(redirectUri: () => string): Promise<IdentityProvider> {
  const accounts = new Map<string, Record<string, unknown>>();
  let handle: ReturnType<Provider["callback"]> | null = null;
  const server = createServer((request, response) => void handle?.(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: "assent", client_secret: "secret", redirect_uris: [redirectUri()] }],
    claims: { openid: ["sub"], profile: ["name", "groups"] },
    pkce: { required: () => true },
    cookies: { keys: ["a key of the test"] },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: async () => ({ sub, ...accounts.get(sub) }),
    }),
  });
  handle = provider.callback();
  return {
    issuer,
    accounts,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
