/**
 * The token endpoint: a client exchanges an ID-JAG for an access token of this service
 * (draft-ietf-oauth-identity-assertion-authz-grant, "Access Token Request"; RFC 7523, section 2.1).
 */
import { type CoreHost, SCOPE_PRESETS } from "../../src/core.ts";
import { type Credential, defineRoute, equalSecrets, Refusal, type Reply, type Scope, Type } from "../../src/plugin.ts";
import type { AccessTokens } from "./access-tokens.ts";
import { type Issuer, type VerifiedToken, verifyToken } from "./verify-token.ts";

const TAG = "workload-identity";
const BODY_BYTES = 16_384;
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const NO_STORE = { "Cache-Control": "no-store", Pragma: "no-cache" };
/** Parameters that a request can repeat (RFC 8707, section 2). */
const REPEATABLE = "resource";

type OAuthCode =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "invalid_scope"
  | "invalid_target"
  | "unsupported_grant_type"
  | "temporarily_unavailable";

/** An error in the form of RFC 6749, section 5.2. */
class OAuthError extends Error {
  readonly code: OAuthCode;

  constructor(code: OAuthCode, message: string) {
    super(message);
    this.code = code;
  }
}

interface TokenEndpointOptions {
  host: CoreHost;
  /** The issuers of ID-JAGs. */
  issuers: readonly Issuer[];
  /** The issuer identifier of this service, without a slash at its end. */
  self: string;
  tokens: AccessTokens;
  /** Returns the credential of a verified ID-JAG. Throws INVALID_CREDENTIAL. */
  identify(verified: VerifiedToken): Promise<Credential>;
}

export function tokenRoutes({ host, issuers, self, tokens, identify }: TokenEndpointOptions) {
  const document = { description: "As the standard defines it.", schema: Type.Record(Type.String(), Type.Unknown()) };
  return [
    defineRoute({
      method: "POST",
      path: "/oauth/token",
      tag: TAG,
      summary: "Exchange an ID-JAG for an access token",
      description:
        "RFC 7523. The client authenticates with its secret (`client_secret_basic` or `client_secret_post`). Each ID-JAG works once. The access token replaces an API key, and ends with the ID-JAG, after an hour at most. Errors have the form of RFC 6749.",
      scope: null,
      textBodies: ["application/x-www-form-urlencoded"],
      bodyLimit: BODY_BYTES,
      responses: { 200: document, 400: document, 401: document, 503: document },
      errorContentType: "application/json",
      async handle({ body, headers }) {
        try {
          return await exchange(readForm(body), headers.get("authorization"));
        } catch (error) {
          return renderError(error);
        }
      },
    }),
    defineRoute({
      method: "GET",
      path: "/.well-known/oauth-authorization-server",
      tag: TAG,
      summary: "Describe the authorization server",
      description: "RFC 8414.",
      scope: null,
      responses: { 200: document },
      handle: () => ({
        status: 200,
        json: {
          issuer: self,
          token_endpoint: `${self}/oauth/token`,
          response_types_supported: [],
          grant_types_supported: [JWT_BEARER],
          authorization_grant_profiles_supported: ["urn:ietf:params:oauth:grant-profile:id-jag"],
          token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
          scopes_supported: SCOPE_PRESETS.agent,
        },
      }),
    }),
    defineRoute({
      method: "GET",
      path: "/.well-known/oauth-protected-resource",
      tag: TAG,
      summary: "Describe the API as a protected resource",
      description: "RFC 9728.",
      scope: null,
      responses: { 200: document },
      handle: () => ({
        status: 200,
        json: {
          resource: self,
          authorization_servers: [self],
          scopes_supported: SCOPE_PRESETS.agent,
          bearer_methods_supported: ["header"],
        },
      }),
    }),
  ];

  async function exchange(form: ReadonlyMap<string, readonly string[]>, authorization: string | null): Promise<Reply> {
    const value = (name: string): string | undefined => form.get(name)?.[0];
    const type = value("grant_type");
    if (type === undefined) throw new OAuthError("invalid_request", "the parameter grant_type is missing");
    const client = authenticateClient(value, authorization);
    if (type !== JWT_BEARER) throw new OAuthError("unsupported_grant_type", `the only grant type is ${JWT_BEARER}`);
    const assertion = value("assertion");
    if (assertion === undefined) throw new OAuthError("invalid_request", "the parameter assertion is missing");
    const verified = await verifyToken(assertion, client.issuers, host.timeOfDay());
    if (verified === null) throw new OAuthError("invalid_grant", "the assertion is not a JWT");
    const { payload, issuer } = verified;
    if (payload["client_id"] !== client.id)
      throw new OAuthError("invalid_grant", "the assertion was issued to another client");
    if (payload["authorization_details"] !== undefined)
      throw new OAuthError(
        "invalid_grant",
        "the assertion has authorization_details, which this service cannot honour",
      );
    const scopes = grantScopes(payload["scope"], value("scope"));
    const resources = grantResources([self, ...issuer.options.resources], payload["resource"], form.get(REPEATABLE));
    await identify(verified);
    if (!(await tokens.use(verified)))
      throw new OAuthError(
        "invalid_grant",
        "the assertion was exchanged before; each works once, so request another one",
      );
    const { token, seconds } = tokens.issue(assertion, verified, scopes);
    return {
      status: 200,
      json: {
        access_token: token,
        token_type: "Bearer",
        expires_in: seconds,
        scope: scopes.join(" "),
        ...(resources.length === 0 ? {} : { resource: resources.length === 1 ? resources[0] : resources }),
      },
      headers: NO_STORE,
    };
  }

  /** Returns the client that sent its secret, and the issuers in whose configuration it has this secret. */
  function authenticateClient(value: (name: string) => string | undefined, authorization: string | null) {
    const basic = authorization === null ? null : readBasic(authorization);
    if (basic !== null && value("client_secret") !== undefined)
      throw new OAuthError("invalid_request", "the client authenticates in two ways; use one");
    const [id, secret] = basic ?? [value("client_id"), value("client_secret")];
    if (basic !== null && (value("client_id") ?? id) !== id)
      throw new OAuthError("invalid_request", "client_id is not the client that authenticates");
    const own = issuers.filter(
      ({ options: { clients } }) =>
        id !== undefined &&
        secret !== undefined &&
        Object.hasOwn(clients, id) &&
        equalSecrets(clients[id] as string, secret),
    );
    if (id === undefined || own.length === 0)
      throw new OAuthError("invalid_client", "no client has this client_id and secret");
    return { id, issuers: own };
  }
}

/** Parses a form. Parameters without a value count as omitted (RFC 6749, section 3.2). Throws OAuthError. */
function readForm(text: string): Map<string, string[]> {
  const form = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const values = form.get(name) ?? [];
    if (values.length > 0 && name !== REPEATABLE)
      throw new OAuthError("invalid_request", `the parameter ${name} occurs twice`);
    form.set(name, [...values, value]);
  }
  for (const [name, values] of form) {
    const given = values.filter((value) => value !== "");
    if (given.length === 0) form.delete(name);
    else form.set(name, given);
  }
  return form;
}

/** Returns the id and secret of a client (RFC 6749, section 2.3.1). Throws OAuthError. */
function readBasic(authorization: string): [id: string, secret: string] {
  const [, encoded] = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization) ?? [];
  const text = encoded === undefined ? "" : Buffer.from(encoded, "base64").toString();
  const colon = text.indexOf(":");
  try {
    const decode = (part: string): string => decodeURIComponent(part.replaceAll("+", " "));
    if (colon > 0) return [decode(text.slice(0, colon)), decode(text.slice(colon + 1))];
  } catch {
    // Not the encoding of a form.
  }
  throw new OAuthError("invalid_client", "the Authorization header is not Basic with a client_id and a secret");
}

/**
 * Returns the scopes of an agent that both the ID-JAG and the request name. Each of them can leave the choice to the
 * other one, and both to this service. Throws OAuthError.
 */
function grantScopes(claim: unknown, requested: string | undefined): Scope[] {
  if (claim !== undefined && typeof claim !== "string")
    throw new OAuthError("invalid_grant", "the scope of the assertion is not a string");
  const lists = [claim, requested].flatMap((list) => (list === undefined ? [] : [list.split(" ")]));
  const granted = SCOPE_PRESETS.agent.filter((scope) => lists.every((list) => list.includes(scope)));
  if (granted.length > 0) return granted;
  throw new OAuthError("invalid_scope", `the scope must contain at least one of: ${SCOPE_PRESETS.agent.join(" ")}`);
}

/** Returns the resources that the token is for, of those that the ID-JAG and the request name. Throws OAuthError. */
function grantResources(
  accepted: readonly string[],
  claim: unknown,
  requested: readonly string[] | undefined,
): string[] {
  const isOwn = (uri: unknown): boolean => accepted.some((each) => uri === each || uri === `${each}/`);
  const named = claim === undefined ? (requested ?? []) : [claim].flat();
  if (claim !== undefined && !named.some(isOwn))
    throw new OAuthError("invalid_target", "the assertion is for other resources");
  if (requested !== undefined && !requested.every((uri) => isOwn(uri) && named.includes(uri)))
    throw new OAuthError("invalid_target", "the requested resource is not one of this service and the assertion");
  return (requested ?? named).filter((uri): uri is string => isOwn(uri));
}

function renderError(error: unknown): Reply {
  if (error instanceof Refusal) {
    const isTransient = error.kind.status >= 500;
    const message = error.message.replace("the workload token", "the assertion");
    const reply = renderError(new OAuthError(isTransient ? "temporarily_unavailable" : "invalid_grant", message));
    return isTransient ? { ...reply, headers: { ...error.headers, ...reply.headers } } : reply;
  }
  if (!(error instanceof OAuthError)) throw error;
  const { code, message } = error;
  return {
    status: code === "invalid_client" ? 401 : code === "temporarily_unavailable" ? 503 : 400,
    // The standard allows only ASCII without quotation marks and backslashes.
    json: { error: code, error_description: message.replaceAll(/["\\]/g, "'").replaceAll(/[^\x20-\x7e]/g, "?") },
    headers: code === "invalid_client" ? { ...NO_STORE, "WWW-Authenticate": 'Basic realm="assent"' } : NO_STORE,
  };
}
