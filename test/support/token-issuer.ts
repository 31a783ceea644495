/** An issuer of workload tokens on loopback. A test can replace, break or remove its key set. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

export interface TokenIssuer {
  /** URL of the key set. */
  jwks: string;
  /** Response that replaces the key set, if it is not null. */
  answer: { status?: number; body: string; headers?: Record<string, string> } | null;
  /** The published keys. */
  keys: JWK[];
  /** Number of requests for the key set. */
  reads: number;
  /** Adds a key pair, published or not. */
  addKey(kid: string, options?: { alg?: string; published?: boolean; use?: string }): Promise<void>;
  privateKey(kid: string): CryptoKey;
  /** Signs a token as this issuer does. @param header replaces members of the header */
  sign(claims: object, header?: object): Promise<string>;
  close(): Promise<void>;
}

export async function startTokenIssuer(alg = "RS256"): Promise<TokenIssuer> {
  const pairs = new Map<string, CryptoKey>();
  const server = createServer((_request, response) => {
    issuer.reads += 1;
    const { status = 200, body, headers = {} } = issuer.answer ?? { body: JSON.stringify({ keys: issuer.keys }) };
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer: TokenIssuer = {
    jwks: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
    answer: null,
    keys: [],
    reads: 0,
    async addKey(kid, { alg: algorithm = alg, published = true, use = "sig" } = {}) {
      const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
      pairs.set(kid, privateKey);
      if (published) issuer.keys.push({ ...(await exportJWK(publicKey)), kid, alg: algorithm, use });
    },
    privateKey: (kid) => pairs.get(kid) as CryptoKey,
    sign(claims, header = {}) {
      const full = { alg, kid: "first", ...header };
      return new SignJWT({ ...claims }).setProtectedHeader(full).sign(issuer.privateKey(full.kid));
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  await issuer.addKey("first");
  return issuer;
}
