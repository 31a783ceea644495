/** The endpoints of OAuth, and the routes of connected apps. */
import { createHash, timingSafeEqual } from "node:crypto";
import {
  type CoreHost,
  isJsonObject,
  type JsonObject,
  readJsonObject,
  UnreadableRequest,
  utf8,
} from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, type Reply, toRfc3339 } from "../../src/plugin.ts";
import { coversRedirect, type PublicClient, readClient, registerClient, webHost } from "./clients.ts";
import { type GrantService, type IssuedTokens, mayEnd } from "./grants.ts";
import type { createGrantVerifier } from "./id-jag.ts";
import * as schema from "./schemas.ts";
import { type Grant, grantState } from "./state.ts";
import { writeCode } from "./tokens.ts";

const TAG = "oauth";
const FORM = "application/x-www-form-urlencoded";
const BODY_BYTES = 32_768;
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** The only scope: to call tools through a proxy. */
const SCOPE = "mcp";
/** Lifetime of an authorization code. Milliseconds. */
const CODE_MS = 60_000;
const MAX_LISTED = 1000;
const { ERRORS, NO_STORE, OAuthError, renderOAuthError } = schema;

interface OAuthServer {
  host: CoreHost;
  options: schema.OAuthOptions;
  grants: GrantService;
  verifyGrant: ReturnType<typeof createGrantVerifier>;
}

export function oauthRoutes(server: OAuthServer) {
  return [...protocolRoutes(server), introspectionRoute(server), ...pageRoutes(server)];
}

/** Returns the routes of the console's pages. */
export function pageRoutes(server: OAuthServer) {
  return [...consentRoutes(server), ...appRoutes(server)];
}

function protocolRoutes({ host, options, grants, verifyGrant }: OAuthServer) {
  const document = { description: "As the standard defines it.", schema: schema.Metadata };
  return [
    defineRoute({
      method: "GET",
      path: "/.well-known/oauth-authorization-server",
      tag: TAG,
      summary: "Describe the authorization server",
      description: "RFC 8414.",
      scope: null,
      responses: { 200: document },
      handle() {
        const issuer = requireOrigin(host);
        return {
          status: 200,
          json: {
            issuer,
            authorization_endpoint: `${issuer}/oauth/authorize`,
            token_endpoint: `${issuer}/oauth/token`,
            registration_endpoint: `${issuer}/oauth/register`,
            revocation_endpoint: `${issuer}/oauth/revoke`,
            scopes_supported: [SCOPE],
            response_types_supported: ["code"],
            grant_types_supported: ["authorization_code", "refresh_token", JWT_BEARER],
            authorization_grant_profiles_supported: ["urn:ietf:params:oauth:grant-profile:id-jag"],
            token_endpoint_auth_methods_supported: ["none", "client_secret_basic", "client_secret_post"],
            revocation_endpoint_auth_methods_supported: ["none"],
            code_challenge_methods_supported: ["S256"],
            authorization_response_iss_parameter_supported: true,
          },
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/oauth/register",
      tag: TAG,
      summary: "Register a client",
      description: "RFC 7591. The id contains the registration; the service stores nothing.",
      scope: null,
      textBodies: ["application/json"],
      bodyLimit: BODY_BYTES,
      responses: { 201: document, 400: document },
      handle: ({ body }) =>
        answering(async () => ({ status: 201, json: registerClient(readMetadata(body)), headers: NO_STORE })),
    }),
    defineRoute({
      method: "POST",
      path: "/oauth/token",
      tag: TAG,
      summary: "Exchange an authorization code, a refresh token or an ID-JAG for an access token",
      description:
        "RFC 6749, RFC 7523. An access token is valid only together with the key of the proxy for which it was issued.",
      scope: null,
      textBodies: [FORM],
      bodyLimit: BODY_BYTES,
      responses: { 200: document, 400: document, 401: document, 503: document },
      handle: ({ body, headers }) =>
        answering(async () => {
          const form = readForm(body);
          const type = form.get("grant_type");
          if (type === JWT_BEARER) {
            const client = authenticateClient(options, headers.get("authorization"), form);
            const verified = await verifyGrant(required(form, "assertion"), client.id, requireOrigin(host));
            return render(host, await grants.exchangeGrant(verified, client));
          }
          if (type === "authorization_code") {
            const client = findClient(required(form, "client_id"));
            const proof = {
              redirect_uri: required(form, "redirect_uri"),
              code_verifier: required(form, "code_verifier"),
              resource: form.get("resource"),
            };
            return render(host, await grants.exchangeCode(required(form, "code"), client, proof));
          }
          if (type === "refresh_token")
            return render(
              host,
              await grants.refresh(required(form, "refresh_token"), findClient(required(form, "client_id")).id),
            );
          throw new OAuthError("unsupported_grant_type", `the grant type ${type ?? "is missing"} is not supported`);
        }),
    }),
    defineRoute({
      method: "POST",
      path: "/oauth/revoke",
      tag: TAG,
      summary: "Revoke a token, and with it the sign-in",
      description: "RFC 7009.",
      scope: null,
      textBodies: [FORM],
      bodyLimit: BODY_BYTES,
      responses: { 200: { description: "The token is not valid any more." }, 400: document },
      handle: ({ body }) =>
        answering(async () => {
          await grants.revoke(required(readForm(body), "token"));
          return { status: 200, headers: NO_STORE };
        }),
    }),
  ];
}

function introspectionRoute({ host, grants }: OAuthServer) {
  return defineRoute({
    method: "POST",
    path: "/oauth/introspect",
    tag: TAG,
    summary: "Check the access token of a client",
    description: "RFC 7662, for proxies. A token that this proxy may not present is not active.",
    scope: schema.SCOPES.present,
    textBodies: [FORM],
    bodyLimit: BODY_BYTES,
    responses: {
      200: { description: "Whether the token is active, and for whom.", schema: schema.Metadata },
      400: { description: "As the standard defines it.", schema: schema.Metadata },
    },
    handle: ({ body, credential }) =>
      answering(async () => {
        const found = await grants.findByToken(required(readForm(body), "token"), credential.key.id);
        if (typeof found === "string") return { status: 200, json: { active: false }, headers: NO_STORE };
        const { grant, expires_at } = found;
        const { user: sub, client, resource: aud, agent_id } = grant;
        const json = { sub, client_id: client.id, aud, iss: requireOrigin(host), scope: SCOPE, agent_id };
        const exp = Math.floor(expires_at / 1000);
        return { status: 200, json: { active: true, token_type: "Bearer", exp, ...json }, headers: NO_STORE };
      }),
  });
}

function consentRoutes({ host, options }: OAuthServer) {
  return [
    defineRoute({
      method: "GET",
      path: "/oauth/authorize",
      tag: TAG,
      summary: "Ask the user to connect a client",
      description:
        "Clients open it in the user's browser. Redirects to the page of the console on which the user answers.",
      scope: null,
      query: schema.AuthorizationQuery,
      responses: { 303: { description: "Redirects to the console." } },
      errors: [ERRORS.invalid],
      handle({ query }) {
        // Never redirect to an address that is not one of the client.
        readRequest(query);
        const location = `/#/connect-app?${new URLSearchParams(query)}`;
        return { status: 303, headers: { Location: location, ...NO_STORE, "Referrer-Policy": "no-referrer" } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/oauth/consent",
      tag: TAG,
      summary: "Read or answer the request of a client",
      description:
        "For the session of a person in a browser. An answer contains the address to which the browser returns.",
      scope: host.scopes,
      body: schema.ConsentBody,
      bodyLimit: BODY_BYTES,
      responses: { 200: { description: "What the client asks for.", schema: schema.Consent } },
      errors: [ERRORS.invalid, ERRORS.notPerson],
      async handle({ body, credential }) {
        const { answer, ...request } = body;
        const { client, redirect_uri, fault } = readRequest(request);
        const resource =
          options.resources.find(({ url }) => url === request.resource) ?? onlyResource(options, request);
        const agent_id = resource?.agent;
        const host_ = webHost(redirect_uri);
        if (host_ !== null && resource?.redirect_hosts.includes(host_) !== true)
          throw new Refusal(
            ERRORS.invalid,
            `sign-ins may not return to ${host_}; an operator lists it in \`redirect_hosts\` of the resource`,
          );
        const back = (parameters: Record<string, string>): string =>
          redirectTo(redirect_uri, { ...parameters, iss: requireOrigin(host), state: request.state });
        if (resource === undefined || agent_id === undefined || fault !== null) {
          const why = fault ?? "no agent is configured for users who sign in with a browser at this resource";
          throw new Refusal(ERRORS.invalid, why);
        }
        const { session } = credential;
        if (session === undefined || session.terminal)
          throw new Refusal(ERRORS.notPerson, "sign in as a person to connect an app; an API key cannot");
        const code = (): string =>
          writeCode(host.vault, {
            id: host.newId(),
            user_id: session.user.id,
            client_id: client.id,
            client_name: client.name,
            redirect_uri,
            code_challenge: request.code_challenge as string,
            resource: resource.url,
            agent_id,
            expires_at: host.timeOfDay() + CODE_MS,
          });
        const redirect =
          answer === null ? null : back(answer === "allow" ? { code: code() } : { error: "access_denied" });
        return {
          status: 200,
          json: {
            client: client.name,
            returns_to: host_ ?? describeProgram(redirect_uri),
            resource: resource.url,
            agent_id,
            redirect,
          },
          headers: NO_STORE,
        };
      },
    }),
  ];
}

function appRoutes({ host, grants }: OAuthServer) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/oauth/apps",
      tag: TAG,
      summary: "List connected apps, newest first",
      description: `Users who read users see the newest ${MAX_LISTED} of all; others see their own. Apps that ended are listed for some time.`,
      scope: host.scopes,
      responses: { 200: { description: "The connected apps.", schema: schema.GrantList } },
      async handle({ credential }) {
        const all = [...(await host.state(grantState)).byId.values()];
        const visible = all.filter((grant) => canSee(credential, grant));
        const newest = visible.sort((a, b) => b.granted_at - a.granted_at).slice(0, MAX_LISTED);
        return { status: 200, json: { apps: newest.map(renderGrant) } };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/v1/oauth/apps/:id",
      tag: TAG,
      summary: "Disconnect an app",
      description: "Its tokens are not valid any more. Available to its user, and to those who manage users.",
      scope: host.scopes,
      params: schema.IdParams,
      responses: { 200: { description: "The app.", schema: schema.GrantRecord } },
      errors: [ERRORS.notFound],
      async handle({ params, credential }) {
        return { status: 200, json: renderGrant(await grants.end(credential, params.id)) };
      },
    }),
  ];
}

const canSee = (caller: Credential, grant: Grant): boolean =>
  caller.key.agent_id === null && (mayEnd(caller, grant) || caller.hasScope("users:read"));

function renderGrant({ client, granted_at, refreshed_at, expires_at, ended_at, ...grant }: Grant): schema.GrantRecord {
  const { id, user, agent_id, resource, issuer } = grant;
  return {
    id,
    user,
    agent_id,
    resource,
    issuer,
    client: client.name,
    granted_at: toRfc3339(granted_at),
    refreshed_at: toRfc3339(refreshed_at),
    expires_at: toRfc3339(expires_at),
    ended_at: ended_at === null ? null : toRfc3339(ended_at),
  };
}

/** Returns the issuer, which is the origin of the service. */
function requireOrigin(host: CoreHost): string {
  const origin = host.origin();
  if (origin !== null) return origin;
  throw new Refusal(ERRORS.invalid, "the service does not know its own address; set server.public_url");
}

async function answering(work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof OAuthError) return renderOAuthError(error);
    throw error;
  }
}

function readMetadata(text: string): JsonObject {
  try {
    const value = readJsonObject(utf8(text));
    if (isJsonObject(value)) return value;
  } catch (error) {
    if (!(error instanceof UnreadableRequest) && !(error instanceof RangeError)) throw error;
  }
  throw new OAuthError("invalid_request", "the body is not a JSON object");
}

/** Parses a form, in which no parameter may occur twice. */
function readForm(text: string): Map<string, string> {
  const form = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (form.has(name)) throw new OAuthError("invalid_request", `the parameter ${name} occurs twice`);
    if (value !== "") form.set(name, value);
  }
  return form;
}

function required(form: ReadonlyMap<string, string>, name: string): string {
  const value = form.get(name);
  if (value === undefined) throw new OAuthError("invalid_request", `the parameter ${name} is missing`);
  return value;
}

function findClient(id: string): PublicClient {
  const client = readClient(id);
  if (client === null) throw new OAuthError("invalid_client", "the client is not registered; register it again");
  return client;
}

/** Returns the configured client that sent its secret, in one of the two ways. Throws OAuthError. */
function authenticateClient(
  { issuers }: schema.OAuthOptions,
  authorization: string | null,
  form: ReadonlyMap<string, string>,
): { id: string; agent: string } {
  const basic = /^basic +([A-Za-z0-9+/=_-]+)$/i.exec(authorization ?? "")?.[1];
  const [user = "", ...rest] = basic === undefined ? [] : Buffer.from(basic, "base64").toString().split(":");
  if (basic !== undefined && form.has("client_secret"))
    throw new OAuthError("invalid_request", "the client authenticates in two ways; use one");
  const id = basic === undefined ? required(form, "client_id") : decodeForm(user);
  const secret = basic === undefined ? (form.get("client_secret") ?? "") : decodeForm(rest.join(":"));
  if (basic !== undefined && (form.get("client_id") ?? id) !== id)
    throw new OAuthError("invalid_request", "client_id differs from the client that authenticates");
  const found = issuers.flatMap(({ clients }) => clients).filter((each) => each.id === id);
  const client = found.find((each) => timingSafeEqual(digest(each.secret), digest(secret)));
  if (client === undefined)
    throw new OAuthError("invalid_client", "the client is unknown, or its secret is not the one in the configuration");
  return client;
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

const decodeForm = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
};

/**
 * Returns the client and the address of an authorization request. Throws OAUTH_REQUEST_INVALID if the browser must not
 * return to this address; `fault` states what else is wrong.
 */
function readRequest(request: schema.AuthorizationRequest) {
  const client = readClient(request.client_id);
  if (client === null)
    throw new Refusal(ERRORS.invalid, "the client is not registered with this service; connect the app again");
  const { redirect_uri, response_type, code_challenge, code_challenge_method } = request;
  if (!URL.canParse(redirect_uri) || !coversRedirect(client.redirect_uris, redirect_uri))
    throw new Refusal(ERRORS.invalid, "the redirect URI is not one with which the client registered");
  const fault =
    response_type !== "code"
      ? "the response type must be code"
      : code_challenge_method !== "S256" || !/^[A-Za-z0-9_-]{43}$/.test(code_challenge ?? "")
        ? "the client must use PKCE with S256"
        : null;
  return { client, redirect_uri, fault };
}

/** A client of an early revision of MCP names no resource. */
const onlyResource = ({ resources }: schema.OAuthOptions, { resource }: schema.AuthorizationRequest) =>
  resource === undefined && resources.length === 1 ? resources[0] : undefined;

function redirectTo(uri: string, parameters: Record<string, string | undefined>): string {
  const url = new URL(uri);
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
}

const describeProgram = (uri: string): string =>
  uri.startsWith("http") ? "a program on this computer" : `the application for ${new URL(uri).protocol}`;

function render(host: CoreHost, { access_token, refresh_token, expires_at }: IssuedTokens): Reply {
  return {
    status: 200,
    json: {
      access_token,
      token_type: "Bearer",
      expires_in: Math.max(1, Math.floor((expires_at - host.clock()) / 1000)),
      scope: SCOPE,
      ...(refresh_token === null ? {} : { refresh_token }),
    },
    headers: NO_STORE,
  };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    oauth: typeof oauthRoutes;
  }
}
