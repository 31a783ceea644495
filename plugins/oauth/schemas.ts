/** Schemas of the authorization server: the options, the errors, the entry and the routes. */
import { closed, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { defineScopes, errorKind, Refusal, type Reply, type Static, Type } from "../../src/plugin.ts";
import { issuerFields } from "../workload-identity/api.ts";

export const ERRORS = {
  notFound: errorKind("OAUTH_GRANT_NOT_FOUND", 404, "No such connected app"),
  invalid: errorKind("OAUTH_REQUEST_INVALID", 400, "The request of the app is not valid"),
  notPerson: errorKind("OAUTH_PERSON_REQUIRED", 403, "Only a person can connect an app"),
};

/** Codes of the errors whose form OAuth defines (RFC 6749, section 5.2), and which differ from those of the API. */
export type OAuthErrorCode =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "invalid_target"
  | "invalid_redirect_uri"
  | "unsupported_grant_type"
  | "temporarily_unavailable";

/** A refusal, so that it fails only its own job of the ledger. */
export class OAuthError extends Refusal {
  readonly error: OAuthErrorCode;

  constructor(error: OAuthErrorCode, message: string) {
    super(ERRORS.invalid, message);
    this.error = error;
  }
}

const STATUS: Partial<Record<OAuthErrorCode, number>> = { invalid_client: 401, temporarily_unavailable: 503 };

export const NO_STORE = { "Cache-Control": "no-store", Pragma: "no-cache" } as const;

export function renderOAuthError({ error: code, message }: OAuthError): Reply {
  return {
    status: STATUS[code] ?? 400,
    // The standard allows only ASCII without quotation marks and backslashes.
    json: { error: code, error_description: message.replaceAll(/["\\]/g, "'").replaceAll(/[^\x20-\x7e]/g, "?") },
    headers: {
      ...NO_STORE,
      ...(code === "invalid_client" ? { "WWW-Authenticate": 'Basic realm="oauth"' } : {}),
      ...(code === "temporarily_unavailable" ? { "Retry-After": "30" } : {}),
    },
  };
}

/** `oauth:present` lets a proxy act for the users whose access tokens it presents. */
export const SCOPES = defineScopes("oauth", ["present"]);

const Name = (description: string) => Type.String({ minLength: 1, maxLength: 256, format: "name", description });
const Url = (description: string) =>
  Type.String({
    pattern: "^(?:https://|http://(?:localhost|127\\.0\\.0\\.1|\\[::1\\])(?:[:/]|$))[^\\s?#]*$",
    maxLength: 500,
    description,
  });

const Resource = Type.Object(
  {
    url: Url("Address of the proxy for MCP clients, exactly as they are configured with it."),
    agent: Type.Optional(Name("Agent of clients whose user signs in with a browser. Default: no one can.")),
    keys: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
        minItems: 1,
        uniqueItems: true,
        description:
          "Ids of the API keys with which the proxy may present access tokens. Default: every key with the scope `oauth:present`, if there is one resource; else none.",
      }),
    ),
    redirect_hosts: Type.Array(Type.String({ pattern: "^[a-z0-9.-]+$", maxLength: 253 }), {
      default: [],
      maxItems: 50,
      description:
        "Hosts of web applications to which a sign-in may return. Programs on the user's machine always may.",
    }),
  },
  closed,
);
export type Resource = Static<typeof Resource>;

const GrantIssuer = Type.Object(
  {
    ...issuerFields,
    max_lifetime_seconds: Type.Integer({
      default: 3600,
      minimum: 60,
      maximum: 86_400,
      description: "Grants that are valid for longer are rejected.",
    }),
    clients: Type.Array(
      Type.Object(
        {
          id: Type.String({ minLength: 1, maxLength: 500, description: "`client_id` of the MCP client." }),
          secret: Type.String({ minLength: 16, maxLength: 500, description: "Use an environment variable." }),
          agent: Name("Agent of the client."),
        },
        closed,
      ),
      { minItems: 1, maxItems: 200, description: "MCP clients that exchange grants of this issuer." },
    ),
  },
  closed,
);
export type GrantIssuer = Static<typeof GrantIssuer>;

/** The options: the key `oauth` of `assent.yaml`. */
export const OAuthOptions = Type.Object(
  {
    resources: Type.Array(Resource, {
      default: [],
      maxItems: 50,
      description: "MCP proxies whose users sign in here. Without any, the service is no authorization server.",
    }),
    issuers: Type.Array(GrantIssuer, {
      default: [],
      maxItems: 20,
      description: "Identity providers whose ID-JAG clients exchange for an access token.",
    }),
    access_minutes: Type.Integer({
      default: 60,
      minimum: 5,
      maximum: 1440,
      description: "Lifetime of an access token.",
    }),
    refresh_days: Type.Integer({
      default: 30,
      minimum: 1,
      maximum: 365,
      description: "Days after a sign-in with a browser until the user must sign in again.",
    }),
  },
  { default: {}, additionalProperties: false, description: "The authorization server for MCP proxies." },
);
export type OAuthOptions = Static<typeof OAuthOptions>;

/** The type of the entry about a grant. */
export const GRANT_ENTRY = "oauth:grant";

/** `data` of the entry. */
export const GrantChange = Type.Object(
  {
    change: Type.Union([Type.Literal("granted"), Type.Literal("refreshed"), Type.Literal("ended")]),
    grant_id: Type.String(),
    user: textSchema("Principal of the user for whom the client acts."),
    client: Type.Object({ id: Type.String(), name: textSchema("As the client states it.") }, closed),
    resource: textSchema("The proxy for which the access tokens are."),
    issuer: orNull(textSchema("`id` of the issuer of the ID-JAG. Null if the user signed in with a browser.")),
    claims: Type.Record(Type.String(), Type.Unknown(), { description: "Claims that conditions read." }),
    used: orNull(
      textSchema("SHA-256 of the issuer and the `jti` of what was exchanged, or of the authorization code."),
    ),
    access_expires_at: orNull(timeSchema("Expiry of the newest access token.")),
    expires_at: timeSchema("Time after which no further access token is issued."),
    reason: orNull(textSchema("Why the grant ended.")),
  },
  closed,
);
export type GrantChange = Static<typeof GrantChange>;

const Parameter = (maxLength: number) => Type.Optional(Type.String({ maxLength }));

/** The parameters of an authorization request. The service validates them, because they come from the client. */
const authorization = {
  response_type: Parameter(40),
  client_id: Type.String({ minLength: 1, maxLength: 4000 }),
  redirect_uri: Type.String({ minLength: 1, maxLength: 2000 }),
  code_challenge: Parameter(200),
  code_challenge_method: Parameter(20),
  state: Parameter(2000),
  resource: Parameter(500),
  scope: Parameter(500),
};
/** Accepts unknown parameters, because the standard tells servers to ignore them. */
export const AuthorizationQuery = Type.Object(authorization, { additionalProperties: true });
export type AuthorizationRequest = Static<typeof AuthorizationQuery>;

export const ConsentBody = Type.Object(
  {
    ...authorization,
    answer: orNull(
      Type.Union([Type.Literal("allow"), Type.Literal("refuse")], {
        description: "The person's answer. Null asks only what would be allowed.",
      }),
    ),
  },
  closed,
);

export const Consent = Type.Object(
  {
    client: textSchema("Name of the client, as it states it."),
    returns_to: textSchema("Where the client gets the answer."),
    resource: Type.String(),
    agent_id: Type.String(),
    redirect: orNull(textSchema("Address to which the browser goes next. Null before the answer.")),
  },
  { ...closed, title: "ConnectingApp" },
);

export const GrantRecord = Type.Object(
  {
    id: Type.String(),
    user: textSchema("Principal of the user."),
    agent_id: Type.String(),
    client: textSchema("Name of the client, as it states it."),
    resource: Type.String(),
    issuer: orNull(Type.String()),
    granted_at: timeSchema("When the user connected the client, or the client exchanged its ID-JAG."),
    refreshed_at: timeSchema("When the newest access token was issued."),
    expires_at: timeSchema("Time after which no further access token is issued."),
    ended_at: orNull(timeSchema("When it ended.")),
  },
  { ...closed, title: "ConnectedApp" },
);
export type GrantRecord = Static<typeof GrantRecord>;
export const GrantList = Type.Object({ apps: Type.Array(GrantRecord) }, { ...closed, title: "ConnectedAppList" });
export const IdParams = Type.Object({ id: Type.String({ format: "uuid" }) }, closed);

/** Documents and answers whose form a standard defines. */
export const Metadata = Type.Record(Type.String(), Type.Unknown(), { title: "OAuthDocument" });
