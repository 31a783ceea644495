/** Options of the plugin in `assent.yaml`. */
import { Type, type Static } from "../../src/plugin.ts";
import { closed, type Role, ROLE_NAMES } from "../../src/core.ts";

const Roles = Type.Array(Type.Union(ROLE_NAMES.map((name) => Type.Literal(name as Role))), { uniqueItems: true });

export const ProviderOptions = Type.Object(
  {
    id: Type.String({
      pattern: "^[a-z0-9][a-z0-9-]{0,39}$",
      description: "Part of the provider's URLs in this service, and of `managed_by` of its users.",
    }),
    name: Type.String({ minLength: 1, maxLength: 60, description: "Shown on the sign-in page." }),
    issuer: Type.String({
      pattern: "^(?:https://|http://(?:localhost|127\\.0\\.0\\.1)(?:[:/]|$))[^\\s?#]*$",
      maxLength: 500,
      description: "The provider's issuer identifier, exactly as its discovery document has it.",
    }),
    client_id: Type.String({ minLength: 1, maxLength: 500 }),
    client_secret: Type.String({ minLength: 1, maxLength: 1000, description: "Use an environment variable." }),
    client_authentication: Type.Union(
      [Type.Literal("automatic"), Type.Literal("client_secret_basic"), Type.Literal("client_secret_post")],
      {
        default: "automatic",
        description:
          "How the service sends the client secret. `automatic` uses a method of the discovery document, and Basic if it names none. If it names both, and the provider refuses Basic, the service sends the secret in the body.",
      },
    ),
    scopes: Type.Array(Type.String({ pattern: "^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$" }), {
      default: ["openid", "profile"],
      description: "Scopes of the authorization request.",
    }),
    name_claim: Type.String({ default: "name", minLength: 1, description: "Claim with the display name." }),
    groups_claim: Type.String({
      default: "groups",
      minLength: 1,
      description:
        "Claim with a name or a list of names, which `groups` and `roles` map. A JSON Pointer, such as `/realm_access/roles`, names a nested claim.",
    }),
    groups: Type.Record(Type.String(), Type.Array(Type.String({ minLength: 1, maxLength: 100 })), {
      default: {},
      description: "Groups of this service, by name in the claim. Names that are not listed give no group.",
    }),
    roles: Type.Record(Type.String(), Roles, {
      default: {},
      description: "Roles by name in the claim. Names that are not listed give no role.",
    }),
    email_domains: Type.Array(Type.String({ pattern: "^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$", maxLength: 253 }), {
      default: [],
      maxItems: 100,
      description:
        "Domains whose e-mail addresses this provider verifies, so that the configuration can refer to its users by address. Then only people with a verified address of these domains can sign in. Needs the scope `email` at most providers.",
    }),
    subject_claim: Type.Union([Type.Literal("sub"), Type.Literal("oid")], {
      default: "sub",
      description:
        "Claim of the ID token that permanently identifies the user. Use `oid` for Microsoft Entra ID with `scim`, because SCIM does not send the `sub`.",
    }),
    refresh_minutes: Type.Integer({
      default: 15,
      minimum: 1,
      maximum: 1440,
      description:
        "Minutes between two checks of a session at the provider, which needs a refresh token (the scope `offline_access` at most providers). A session whose refresh is refused ends.",
    }),
    scim: Type.Boolean({
      default: false,
      description:
        "The provider creates, changes and deactivates its users here with SCIM. Then no one else of the provider can sign in, and claims change nothing.",
    }),
    scim_keys: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
        minItems: 1,
        maxItems: 20,
        uniqueItems: true,
        description:
          "Ids of the API keys with which the provider's SCIM client may act. Default: every key with the scope `users:provision`, if no other provider has `scim`; else none.",
      }),
    ),
    everyone: Type.Array(Roles.items, {
      default: [],
      uniqueItems: true,
      description:
        "Roles of everyone who can sign in at the provider. If `groups` or `roles` are set, a person whose groups the provider does not send has no role.",
    }),
  },
  closed,
);
export type ProviderOptions = Static<typeof ProviderOptions>;

const PushOptions = Type.Object(
  {
    contact: Type.Optional(
      Type.String({
        pattern: "^(?:mailto:|https://)[\\x21-\\x7e]+$",
        maxLength: 500,
        description: "Contact for push services, such as mailto:ops@example.com. Default: `server.public_url`.",
      }),
    ),
    allow_private: Type.Optional(
      Type.Boolean({ description: "Accepts push services at private addresses, including over HTTP. Default: false." }),
    ),
    tls_ca_file: Type.Optional(
      Type.String({ minLength: 1, description: "Certificate authorities of the push services, in PEM." }),
    ),
  },
  closed,
);

export const Options = Type.Object(
  {
    session_idle_minutes: Type.Integer({
      default: 720,
      minimum: 1,
      maximum: 43_200,
      description: "Ends a session that was not used for this many minutes.",
    }),
    session_hours: Type.Integer({
      default: 168,
      minimum: 1,
      maximum: 2160,
      description: "Ends a session this many hours after the sign-in, whether it is used or not.",
    }),
    providers: Type.Array(ProviderOptions, {
      default: [],
      maxItems: 20,
      description: "OpenID Connect providers where people can sign in.",
    }),
    push: Type.Optional(PushOptions),
  },
  closed,
);
export type Options = Static<typeof Options>;
