/**
 * An OpenID Connect provider that can issue wrong tokens. `identity-provider.ts` has a correct one.
 * @needs users
 */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from "jose";
import { ORIGIN, PAGE, type SessionHeaders } from "./people.ts";
import type { Answer, Service } from "./service.ts";

export interface LyingProvider {
  issuer: string;
  /** Claims of the next person who signs in. */
  claims: JWTPayload;
  /** Claims of the userinfo endpoint, which only a document with `userinfo_endpoint` announces. */
  userinfo: Record<string, unknown>;
  /** Changes the ID token's claims before they are signed. */
  lie(claims: JWTPayload): JWTPayload;
  /** If true, signs with a key that is not published. */
  forges: boolean;
  /** Number of seconds by which the provider's clock is ahead. */
  ahead: number;
  /** If it is not 0, every request gets this status. */
  status: number;
  /** Members that replace those of the discovery document; undefined leaves a member out. */
  metadata: Record<string, unknown>;
  /** The method with which this client must send its secret; null accepts any. */
  secretMethod: "client_secret_basic" | "client_secret_post" | null;
  /** The response to a client secret that is sent in another way than `secretMethod`. */
  wrongMethod: [status: number, body: unknown];
  /** Parameters of the authorization request, by code. A code works once. */
  readonly codes: Map<string, URLSearchParams>;
  /** If true, issues refresh tokens. */
  offline: boolean;
  /** Refresh tokens that it accepts. Each works once and is replaced. */
  readonly refreshTokens: Set<string>;
  /** Called before it answers a request for another refresh token. */
  beforeRefresh(): Promise<void>;
  /** Signs a logout token. @param change members that replace those of a valid one; undefined leaves a member out */
  logoutToken(change: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>;
  /** Issues a code for the authorization request at this address, as if a person had signed in. */
  authorize(url: string): { code: string; state: string; iss: string };
  close(): Promise<void>;
}

/** @param path the path of the issuer, such as `/realms/company` or `/` */
export async function startLyingProvider(path = ""): Promise<LyingProvider> {
  const [real, other] = [await generateKeyPair("RS256"), await generateKeyPair("RS256")];
  const jwk = { ...(await exportJWK(real.publicKey)), kid: "1", alg: "RS256", use: "sig" };
  const server: Server = createServer((request, response) => {
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { authorization = null } = request.headers;
      void answer(request.url ?? "", Buffer.concat(chunks).toString(), authorization).then(
        ([status, body]) => send(status, body),
        (error: unknown) => send(400, { error: "invalid_grant", error_description: String(error) }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = origin + path;

  async function answer(requested: string, text: string, authorization: string | null): Promise<[number, unknown]> {
    if (provider.status !== 0) return [provider.status, { error: "server_error" }];
    if (requested === `${path.replace(/\/$/, "")}/.well-known/openid-configuration`)
      return [
        200,
        {
          issuer,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          jwks_uri: `${origin}/jwks`,
          response_types_supported: ["code"],
          subject_types_supported: ["public"],
          id_token_signing_alg_values_supported: ["RS256"],
          code_challenge_methods_supported: ["S256"],
          authorization_response_iss_parameter_supported: true,
          ...provider.metadata,
        },
      ];
    if (requested === "/jwks") return [200, { keys: [jwk] }];
    if (requested === "/userinfo") return [200, { sub: provider.claims.sub, ...provider.userinfo }];
    assert.equal(requested, "/token");
    const form = new URLSearchParams(text);
    if (provider.secretMethod === "client_secret_basic") {
      const sent = Buffer.from((authorization ?? "").replace(/^Basic /, ""), "base64").toString();
      if (sent !== "assent:secret" || form.has("client_secret")) return provider.wrongMethod;
    }
    if (
      provider.secretMethod === "client_secret_post" &&
      (authorization !== null || form.get("client_secret") !== "secret")
    )
      return provider.wrongMethod;
    if (form.get("grant_type") === "refresh_token") {
      await provider.beforeRefresh();
      const known = provider.refreshTokens.delete(form.get("refresh_token") ?? "");
      return known ? [200, tokens()] : [400, { error: "invalid_grant" }];
    }
    const asked = provider.codes.get(form.get("code") ?? "");
    assert.ok(asked !== undefined, "the code was used before or never existed");
    provider.codes.delete(form.get("code") ?? "");
    const digest = await crypto.subtle.digest("SHA-256", Buffer.from(form.get("code_verifier") ?? ""));
    assert.equal(Buffer.from(digest).toString("base64url"), asked.get("code_challenge"), "PKCE");
    assert.equal(form.get("redirect_uri"), asked.get("redirect_uri"));
    const now = Math.floor(Date.now() / 1000) + provider.ahead;
    const claims = provider.lie({
      iss: issuer,
      aud: asked.get("client_id") ?? "",
      nonce: asked.get("nonce"),
      iat: now,
      exp: now + 60,
      ...provider.claims,
    });
    const signed = await new SignJWT(claims)
      .setProtectedHeader({ alg: "RS256", kid: "1" })
      .sign(provider.forges ? other.privateKey : real.privateKey);
    return [200, { ...tokens(), id_token: signed }];
  }

  function tokens(): object {
    const refresh_token = crypto.randomUUID();
    if (provider.offline) provider.refreshTokens.add(refresh_token);
    return {
      access_token: "access",
      token_type: "Bearer",
      expires_in: 60,
      ...(provider.offline ? { refresh_token } : {}),
    };
  }

  const provider: LyingProvider = {
    issuer,
    claims: { sub: "1", name: "Ada", groups: [] },
    userinfo: {},
    lie: (claims) => claims,
    forges: false,
    ahead: 0,
    status: 0,
    codes: new Map(),
    offline: false,
    metadata: {},
    secretMethod: null,
    wrongMethod: [401, { error: "invalid_client" }],
    refreshTokens: new Set(),
    beforeRefresh: () => Promise.resolve(),
    logoutToken(change, header = {}) {
      const now = Math.floor(Date.now() / 1000);
      const claims = {
        iss: issuer,
        aud: "assent",
        iat: now,
        exp: now + 120,
        jti: crypto.randomUUID(),
        events: { "http://schemas.openid.net/event/backchannel-logout": {} },
        ...change,
      };
      return new SignJWT(claims as JWTPayload)
        .setProtectedHeader({ alg: "RS256", kid: "1", typ: "logout+jwt", ...header })
        .sign(provider.forges ? other.privateKey : real.privateKey);
    },
    authorize(url) {
      const { origin: at, pathname, searchParams } = new URL(url);
      assert.equal(at + pathname, `${origin}/authorize`);
      const code = crypto.randomUUID();
      provider.codes.set(code, searchParams);
      return { code, state: searchParams.get("state") ?? "", iss: issuer };
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return provider;
}

export interface Visitor {
  cookies: Map<string, string>;
  /** Page token of the session; empty before the sign-in. */
  pageToken: string;
  /** Returns the headers that the pages of the session send. */
  session(): SessionHeaders;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
}

/** Sends requests as a browser that keeps cookies, as far as a sign-in at a provider needs them. */
export function createVisitor(service: Service): Visitor {
  const cookies = new Map<string, string>();
  const visitor: Visitor = {
    cookies,
    pageToken: "",
    session: () => ({
      cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; "),
      "assent-session": visitor.pageToken,
    }),
    async get(path, headers = {}) {
      const answer = await service.call("GET", path, {
        key: null,
        headers: { host: PAGE.host, ...visitor.session(), ...headers },
      });
      for (const line of answer.headers.getSetCookie()) {
        const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        if (/Max-Age=0/.test(line)) cookies.delete(name);
        else cookies.set(name, value);
      }
      const [, token] = /#session=([\w-]+)$/.exec(answer.headers.get("location") ?? "") ?? [];
      visitor.pageToken = token ?? visitor.pageToken;
      return answer;
    },
  };
  return visitor;
}

/** Returns the path that the sign-in page opens after a sign-in at a provider. */
export function destinationOf(answer: Answer): string | null {
  const { pathname, searchParams } = new URL(answer.headers.get("location") ?? "", ORIGIN);
  return pathname === "/sign-in" ? searchParams.get("return_to") : null;
}
