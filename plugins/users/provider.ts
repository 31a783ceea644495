/**
 * Client of one OpenID Connect provider: builds the authorization URL, handles the callback and returns the user's
 * claims.
 */
import type { CoreHost } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import { type Claims, findClaim, mergeClaims } from "./claims.ts";
import { ERRORS } from "./user-errors.ts";
import type { Configuration, JWTPayload, JWTVerifyGetKey } from "./openid.ts";
import type { ProviderOptions } from "./user-options.ts";

/** Request timeout. Seconds. */
const TIMEOUT_SECONDS = 10;
/** Maximum difference between the clocks of the provider and the service. Seconds. */
const CLOCK_TOLERANCE = 300;
/** Age at which the discovery document is read again. Milliseconds. */
const FRESH_MS = 3_600_000;

/** Maximum age of a logout token. Seconds. */
export const MAX_LOGOUT_TOKEN_SECONDS = 600;
const SIGNATURE_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

/** Values that bind a callback to the browser and the request that started the sign-in. */
export interface CallbackBinding {
  state: string;
  nonce: string;
  /** PKCE code verifier. */
  verifier: string;
}

/** The result of a callback: the person's verified claims and tokens. */
interface Arrival {
  claims: Claims;
  /** Session id at the provider, if it sends one. */
  sid: string | null;
  refresh_token: string | null;
}

type SecretMethod = "client_secret_basic" | "client_secret_post";

interface KnownProvider {
  at: number;
  /** One configuration for each method with which the secret can be sent. The first is tried first. */
  configurations: readonly Configuration[];
}

export class Provider {
  readonly options: ProviderOptions;
  private readonly host: CoreHost;
  private known: KnownProvider | null = null;
  private keys: { url: string; get: JWTVerifyGetKey } | null = null;

  constructor(host: CoreHost, options: ProviderOptions) {
    this.host = host;
    this.options = options;
  }

  /** Path that the provider redirects to. */
  get callbackPath(): string {
    return `/v1/sign-in/${this.options.id}/callback`;
  }

  /** Returns the authorization URL. Throws USERS_PROVIDER_UNAVAILABLE if the provider cannot be reached. */
  async authorizationUrl(origin: string, { state, nonce, verifier }: CallbackBinding): Promise<string> {
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import("./openid.ts");
    return this.translated(async () =>
      buildAuthorizationUrl(await this.configuration(), {
        redirect_uri: origin + this.callbackPath,
        scope: this.options.scopes.join(" "),
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      }).toString(),
    );
  }

  /**
   * Exchanges the code and verifies the ID token. The claims that identify the person come from the ID token.
   * Throws USERS_PROVIDER_UNAVAILABLE, USERS_PROVIDER_REFUSED or USERS_PROVIDER_INVALID.
   * @param search query of the callback
   */
  async finish(origin: string, search: string, { state, nonce, verifier }: CallbackBinding): Promise<Arrival> {
    const { authorizationCodeGrant, fetchUserInfo } = await import("./openid.ts");
    return this.translated(async () => {
      const callback = new URL(origin + this.callbackPath + search);
      const checks = {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      };
      const tokens = await this.authenticated((each) => authorizationCodeGrant(each, callback, checks));
      const configuration = await this.configuration();
      const claims: Claims = { ...tokens.claims() };
      const sid = typeof claims["sid"] === "string" ? claims["sid"] : null;
      const arrival = { claims, sid, refresh_token: tokens.refresh_token ?? null };
      const { name_claim, groups_claim, email_domains, scim } = this.options;
      const claimNames = [
        ...(scim ? [] : [name_claim, groups_claim]),
        ...(email_domains.length > 0 ? ["email", "email_verified"] : []),
      ];
      const isComplete = claimNames.every((name) => findClaim(claims, name) !== undefined);
      if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return arrival;
      const more = await fetchUserInfo(configuration, tokens.access_token, claims["sub"] as string);
      return { ...arrival, claims: mergeClaims(claims, more, claimNames) };
    });
  }

  /**
   * Asks the provider whether the person still has access. Returns the refresh token for the next check; null if the
   * provider refuses or its response is not valid. Throws USERS_PROVIDER_UNAVAILABLE if it does not respond.
   */
  async refresh(refreshToken: string): Promise<string | null> {
    const { refreshTokenGrant } = await import("./openid.ts");
    try {
      return await this.translated(async () => {
        const tokens = await this.authenticated((each) => refreshTokenGrant(each, refreshToken));
        return tokens.refresh_token ?? refreshToken;
      });
    } catch (error) {
      if (error instanceof Refusal && error.code !== ERRORS.PROVIDER_UNAVAILABLE.code) return null;
      throw error;
    }
  }

  /**
   * Verifies signature, issuer, audience, age and type of a logout token, and returns its claims. Throws
   * USERS_LOGOUT_INVALID, or USERS_PROVIDER_UNAVAILABLE if the provider's keys cannot be read.
   */
  async verifyLogoutToken(token: string): Promise<JWTPayload> {
    const { createRemoteJWKSet, joseErrors, jwtVerify } = await import("./openid.ts");
    const url = await this.translated(async () => (await this.configuration()).serverMetadata().jwks_uri ?? "");
    if (this.keys?.url !== url)
      this.keys = { url, get: createRemoteJWKSet(new URL(url), { timeoutDuration: TIMEOUT_SECONDS * 1000 }) };
    try {
      const { payload, protectedHeader } = await jwtVerify(token, this.keys.get, {
        issuer: this.options.issuer,
        audience: this.options.client_id,
        algorithms: SIGNATURE_ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE,
        maxTokenAge: MAX_LOGOUT_TOKEN_SECONDS,
        currentDate: new Date(this.host.timeOfDay()),
        requiredClaims: ["jti"],
      });
      const type = protectedHeader.typ?.toLowerCase() ?? "jwt";
      if (type === "logout+jwt" || type === "jwt") return payload;
      throw new Refusal(ERRORS.LOGOUT_INVALID, `a token of the type ${type.slice(0, 40)} is not a logout token`);
    } catch (error) {
      if (error instanceof Refusal) throw error;
      const isInvalid =
        error instanceof joseErrors.JOSEError &&
        error.code !== joseErrors.JOSEError.code &&
        !(error instanceof joseErrors.JWKSTimeout);
      if (isInvalid) throw new Refusal(ERRORS.LOGOUT_INVALID, `the logout token is not valid: ${error.message}`);
      this.host.log.warn("the keys of a provider could not be read", {
        provider: this.options.id,
        error: describe(error),
      });
      throw new Refusal(
        ERRORS.PROVIDER_UNAVAILABLE,
        `the keys of ${this.options.name} cannot be read now; try again later`,
      );
    }
  }

  private async configuration(): Promise<Configuration> {
    return (await this.discover()).configurations[0] as Configuration;
  }

  private async discover(): Promise<KnownProvider> {
    const now = this.host.clock();
    if (this.known !== null && Math.abs(now - this.known.at) < FRESH_MS) return this.known;
    const openid = await import("./openid.ts");
    const { issuer, client_id, client_secret } = this.options;
    const url = new URL(issuer);
    const clientMetadata = { client_secret, [openid.clockTolerance]: CLOCK_TOLERANCE };
    const options = {
      timeout: TIMEOUT_SECONDS,
      // Also verify the signature of the ID token, which the library omits by default because the token arrives over
      // TLS.
      execute: [openid.enableNonRepudiationChecks, ...(url.protocol === "http:" ? [openid.allowInsecureRequests] : [])],
    };
    const basic = await openid.discovery(
      url,
      client_id,
      clientMetadata,
      openid.ClientSecretBasic(client_secret),
      options,
    );
    const configurations: Configuration[] = [];
    for (const method of this.secretMethods(basic.serverMetadata().token_endpoint_auth_methods_supported))
      configurations.push(
        method === "client_secret_basic"
          ? basic
          : await openid.discovery(url, client_id, clientMetadata, openid.ClientSecretPost(client_secret), options),
      );
    this.known = { at: now, configurations };
    return this.known;
  }

  /**
   * Returns the methods with which the secret can be sent, the preferred method first.
   * @param announced the methods of the discovery document. Without them, the method is Basic (OpenID Connect Discovery
   * 1.0, section 3)
   */
  private secretMethods(announced: readonly string[] = ["client_secret_basic"]): SecretMethod[] {
    const { client_authentication, name } = this.options;
    if (client_authentication !== "automatic") return [client_authentication];
    const methods = (["client_secret_basic", "client_secret_post"] as const).filter((each) => announced.includes(each));
    if (methods.length > 0) return methods;
    const accepted = announced.map((method) => method.replaceAll(/[^\w.-]/g, "").slice(0, 40)).join(", ");
    throw new Refusal(
      ERRORS.PROVIDER_INVALID,
      `${name} accepts no client secret, only ${accepted}; register a client with a secret there`,
    );
  }

  /**
   * Sends a request that authenticates this client. Providers announce the methods of all clients, but many accept only
   * one of them for each client. So try another method after a refusal.
   */
  private async authenticated<T>(request: (configuration: Configuration) => Promise<T>): Promise<T> {
    const { ResponseBodyError } = await import("./openid.ts");
    const metadata = await this.discover();
    for (const configuration of metadata.configurations) {
      try {
        const done = await request(configuration);
        // Begin with this method from now on.
        metadata.configurations = [configuration, ...metadata.configurations.filter((each) => each !== configuration)];
        return done;
      } catch (error) {
        // Some providers name the wrong method with other codes, or only with the status.
        const isRefused =
          (error instanceof ResponseBodyError && CLIENT_ERRORS.includes(error.error)) || statusOf(error) === 401;
        if (!isRefused || configuration === metadata.configurations.at(-1)) throw error;
      }
    }
    throw new Error("there is no method to send the client secret");
  }

  private async translated<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Refusal) throw error;
      const refusal = await this.refusalOf(error);
      this.host.log.warn("a sign-in at a provider failed", {
        provider: this.options.id,
        code: refusal.code,
        error: describe(error),
      });
      throw refusal;
    }
  }

  private async refusalOf(error: unknown): Promise<Refusal> {
    const { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } =
      await import("./openid.ts");
    const { name } = this.options;
    if (isUnreachable(error))
      return new Refusal(
        ERRORS.PROVIDER_UNAVAILABLE,
        `${name} does not respond, so no one can sign in there now; existing sessions continue; try again later`,
      );
    if (error instanceof WWWAuthenticateChallengeError)
      return new Refusal(
        ERRORS.PROVIDER_REFUSED,
        `${name} did not accept the client id and secret of this service; the operator must correct them`,
      );
    if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError)
      return new Refusal(
        ERRORS.PROVIDER_REFUSED,
        `${name} refused the sign-in (${error.error.replaceAll(/[^\w.-]/g, "").slice(0, 60)}); start again`,
      );
    return new Refusal(
      ERRORS.PROVIDER_INVALID,
      `the response of ${name} is not valid, so no one was signed in; start again`,
    );
  }
}

/** Error codes of a token endpoint that does not accept how the client authenticates. */
const CLIENT_ERRORS = ["invalid_client", "unauthorized_client"];

/** Returns the status of the provider's response; 0 without a response. */
function statusOf(error: unknown): number {
  if (!(error instanceof Error)) return 0;
  const { cause } = error;
  return cause instanceof Response ? cause.status : "status" in error ? Number(error.status) : 0;
}

/** Statuses of a provider that could not handle the request now: 408 Request Timeout, 425 Too Early, 429 Too Many Requests. */
const BUSY_STATUSES = [408, 425, 429];

/** Returns true if the provider did not respond, or responded that it could not handle the request now. */
function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { cause } = error;
  const status = statusOf(error);
  if (status >= 500 || BUSY_STATUSES.includes(status)) return true;
  return [error, cause].some(
    (each) =>
      each instanceof Error &&
      (each.name === "TimeoutError" ||
        each.name === "AbortError" ||
        /^fetch failed$|ECONN|ENOTFOUND/.test(each.message)),
  );
}

/** Describes an error by messages and codes only, because its other members contain parameters and tokens. */
function describe(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error; at instanceof Error && parts.length < 3; at = at.cause) parts.push(at.message);
  return parts.join(": ").slice(0, 500);
}
