/** Options of the plugin in `assent.yaml`, and the checks that a schema cannot express. */
import { describeSecretWeakness, REFERENCE_FORMS, referenceKey } from "../../src/core.ts";
import { Type, type Static } from "../../src/plugin.ts";
import { findSubjectFault } from "./subject-pattern.ts";

const closed = { additionalProperties: false } as const;
const Id = (description: string) => Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,39}$", description });
const ClaimName = "^[a-z][a-z0-9_]{0,39}$";

const WorkloadOptions = Type.Object(
  {
    id: Id("Part of the name of the workload's key."),
    agent: Type.String({ minLength: 1, maxLength: 256, description: "Agent that the token is bound to." }),
    subject: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 500,
        description:
          "The whole `sub`. `*` matches one or more characters other than `/`, `:`, spaces and control characters.",
      }),
    ),
    where: Type.Record(Type.String({ pattern: ClaimName }), Type.String({ maxLength: 500 }), {
      default: {},
      description: "Values that named claims must have.",
    }),
    owner: Type.Optional(
      Type.String({
        maxLength: 200,
        description: `The user behind the agent, who cannot approve its actions: ${REFERENCE_FORMS}.`,
      }),
    ),
  },
  closed,
);
export type WorkloadOptions = Static<typeof WorkloadOptions>;

const IssuerOptions = Type.Object(
  {
    id: Id("Recorded with each decision, as `principal.claims.issuer`."),
    platform: Type.Union(
      (["kubernetes", "github-actions", "spiffe", "id-jag", "oauth"] as const).map((platform) =>
        Type.Literal(platform),
      ),
      { description: "Determines which types of tokens are accepted." },
    ),
    issuer: Type.String({
      pattern: "^[a-z][a-z0-9+.-]*://[^\\s?#]+$",
      maxLength: 500,
      description:
        "The exact `iss`. For `spiffe`, the trust domain, such as `spiffe://example.org`; its tokens may have no `iss`.",
    }),
    audience: Type.String({
      minLength: 1,
      maxLength: 500,
      description: "The exact `aud`. Tokens with more audiences are rejected.",
    }),
    algorithms: Type.Array(
      Type.Union(
        (
          ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"] as const
        ).map((algorithm) => Type.Literal(algorithm)),
      ),
      { minItems: 1, uniqueItems: true, description: "The accepted signature algorithms." },
    ),
    keys: Type.String({
      pattern: "^(?:https://\\S+|http://(?:localhost|127\\.0\\.0\\.1)(?:[:/]\\S*)?|/\\S+)$",
      maxLength: 1000,
      description: "URL or absolute path of the issuer's JSON Web Key Set. Keys are read only from there.",
    }),
    max_lifetime_seconds: Type.Integer({
      default: 86_400,
      minimum: 60,
      maximum: 2_678_400,
      description: "Tokens that are valid for longer are rejected.",
    }),
    claims: Type.Record(
      Type.String({ pattern: ClaimName }),
      Type.Union([
        Type.String({ minLength: 1, maxLength: 200 }),
        Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: 5 }),
      ]),
      {
        default: {},
        maxProperties: 20,
        description:
          "Claims that conditions read as `principal.claims.NAME`, and that are recorded. Maps each NAME to the name of a claim, or to the path of a nested claim.",
      },
    ),
    clients: Type.Record(
      Type.String({ minLength: 1, maxLength: 500 }),
      Type.String({ minLength: 32, maxLength: 500 }),
      {
        default: {},
        description:
          "For `id-jag`: the secret of each client, by its `client_id`. Generate it with `openssl rand -hex 32`, and use environment variables.",
      },
    ),
    resources: Type.Array(Type.String({ pattern: "^https?://[^\\s?#]+$", maxLength: 500 }), {
      default: [],
      maxItems: 50,
      description:
        "For `id-jag`: what the claim `resource` can name besides this service, such as the address of an MCP proxy.",
    }),
    workloads: Type.Array(WorkloadOptions, {
      minItems: 1,
      maxItems: 200,
      description: "The first one that matches a token determines its agent.",
    }),
  },
  closed,
);
export type IssuerOptions = Static<typeof IssuerOptions>;

/** Whether tokens of the platform name a client and the user that it acts for. */
export const actsForUser = (platform: IssuerOptions["platform"]): boolean => ["id-jag", "oauth"].includes(platform);

export const Options = Type.Object(
  {
    issuers: Type.Array(IssuerOptions, {
      default: [],
      maxItems: 20,
      description: "Issuers of tokens that agents can present instead of an API key.",
    }),
  },
  closed,
);

/** Names of claims that the plugin sets. */
const RESERVED = ["issuer", "subject", "client_id"];

/**
 * Throws an Error for options that no token could satisfy, or that are ambiguous.
 * @param self the issuer identifier of this service; null if it has no public address
 */
export function assertIssuers(issuers: readonly IssuerOptions[], self: string | null): void {
  for (const key of ["id", "issuer"] as const) assertDistinct(issuers, key, `issuers have the ${key}`);
  for (const issuer of issuers) {
    const about = `the issuer "${issuer.id}"`;
    assertDistinct(issuer.workloads, "id", `workloads of ${about} have the id`);
    const reservedClaim = RESERVED.find((name) => Object.hasOwn(issuer.claims, name));
    if (reservedClaim !== undefined)
      throw new Error(`${about} names the claim "${reservedClaim}", which is always recorded`);
    if (issuer.platform === "spiffe" && !/^spiffe:\/\/[a-z0-9._-]+$/.test(issuer.issuer))
      throw new Error(`${about} must be a trust domain such as spiffe://example.org; got ${issuer.issuer}`);
    if (issuer.platform === "id-jag" && issuer.audience !== self)
      throw new Error(
        `${about} must have the audience ${self ?? "of `server.public_url`, which is not set"}, because an ID-JAG names this service; got ${issuer.audience}`,
      );
    if (issuer.platform !== "id-jag" && Object.keys(issuer.clients).length + issuer.resources.length > 0)
      throw new Error(`${about} cannot have \`clients\` or \`resources\`, which are for id-jag`);
    for (const [client, secret] of Object.entries(issuer.clients)) {
      const weakness = describeSecretWeakness(secret);
      if (weakness !== null)
        throw new Error(
          `the secret of the client "${client}" of ${about} can be guessed: it ${weakness}; generate one with \`openssl rand -hex 32\``,
        );
    }
    for (const workload of issuer.workloads) assertWorkload(issuer, workload);
  }
}

function assertWorkload({ id, platform, issuer, claims, clients }: IssuerOptions, workload: WorkloadOptions): void {
  const about = `the workload "${workload.id}" of the issuer "${id}"`;
  const { subject, where, owner } = workload;
  const fault = subject === undefined ? null : findSubjectFault(subject);
  if (fault !== null) throw new Error(`${about} has a subject that ${fault}`);
  const known = [...RESERVED.filter((name) => name !== "client_id" || actsForUser(platform)), ...Object.keys(claims)];
  const unknown = Object.keys(where).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new Error(`${about} requires the claim "${unknown}", which is not in \`claims\` of its issuer`);
  if (owner !== undefined && referenceKey(owner) === null)
    throw new Error(`${about} has the owner "${owner}", which identifies no one; give ${REFERENCE_FORMS}`);
  if (actsForUser(platform)) {
    const client = where["client_id"];
    if (client === undefined) throw new Error(`${about} needs \`where: { client_id: … }\`, its MCP client`);
    if (platform === "id-jag" && !Object.hasOwn(clients, client))
      throw new Error(`${about} has the client "${client}", which has no secret in \`clients\` of its issuer`);
    if (owner !== undefined) throw new Error(`${about} cannot have an owner: the user in the token is the owner`);
  } else if (subject === undefined) throw new Error(`${about} needs a subject`);
  else if (platform === "spiffe" && !subject.startsWith(`${issuer}/`))
    throw new Error(`${about} must have a subject in ${issuer}/; got ${subject}`);
}

function assertDistinct<Key extends string>(items: readonly Record<Key, string>[], key: Key, words: string): void {
  const values = items.map((item) => item[key]);
  const twice = values.find((value, at) => values.indexOf(value) !== at);
  if (twice !== undefined) throw new Error(`two ${words} "${twice}"; each needs its own`);
}
