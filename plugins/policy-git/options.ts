/** Options of the plugin. */
import { Type, type Static } from "@sinclair/typebox";

const Github = Type.Object(
  {
    repository: Type.String({
      pattern: "^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$",
      description: "Owner and name of the repository.",
    }),
    token: Type.Optional(
      Type.String({
        minLength: 1,
        description: "Token that can write commit statuses, and contents for comments. Preferably ${VARIABLE}.",
      }),
    ),
    token_file: Type.Optional(
      Type.String({ minLength: 1, description: "File with the token; read before each report." }),
    ),
    api_url: Type.String({
      default: "https://api.github.com",
      pattern: "^https?://",
      maxLength: 500,
      description: "Address of the API, for GitHub Enterprise Server.",
    }),
    context: Type.String({
      default: "assent/policies",
      minLength: 1,
      maxLength: 100,
      description: "Name of the commit status.",
    }),
    comment: Type.Boolean({ default: true, description: "Whether to also comment on commits." }),
  },
  { additionalProperties: false, description: "Reports to GitHub whether each commit was applied." },
);
export type GithubOptions = Static<typeof Github>;

const REPOSITORY = {
  ref: Type.Optional(
    Type.String({
      minLength: 1,
      pattern: "^[^-\\s:?*\\[\\\\^~][^\\s:?*\\[\\\\^~]*$",
      description:
        "Branch or tag; a full ref such as refs/heads/main; or a full commit id. Default: the remote's HEAD.",
    }),
  ),
  folder: Type.String({ default: "", description: "Folder inside the repository. Default: its root." }),
  recursive: Type.Boolean({ default: false, description: "Include subfolders." }),
  baseline: Type.Boolean({
    default: false,
    description:
      "The policies are the baseline: no other source and no suggested rule can replace them or their rules.",
  }),
  interval_seconds: Type.Number({
    default: 60,
    minimum: 1,
    maximum: 86_400,
    description: "Interval at which the repository is polled.",
  }),
  timeout_seconds: Type.Number({ default: 30, minimum: 1, maximum: 600, description: "Timeout of one git command." }),
  username: Type.Optional(
    Type.String({ minLength: 1, description: "User name for http(s). Default: `git` if there is a password." }),
  ),
  password: Type.Optional(
    Type.String({ minLength: 1, description: "Password or token for http(s). Preferably ${VARIABLE}." }),
  ),
  password_file: Type.Optional(
    Type.String({ minLength: 1, description: "File with the password or token; read before each fetch." }),
  ),
  ssh_key_file: Type.Optional(Type.String({ minLength: 1, description: "Private key for ssh, without a passphrase." })),
  known_hosts_file: Type.Optional(
    Type.String({
      minLength: 1,
      description: "Host keys for ssh. Default: the user's. Unknown hosts are rejected.",
    }),
  ),
  signed_by: Type.Optional(
    Type.Array(Type.String({ pattern: "^(ssh|sk-ssh|ecdsa|sk-ecdsa)-[^\\s]+ [A-Za-z0-9+/=]+( .*)?$" }), {
      minItems: 1,
      description:
        "OpenSSH public keys. The commit must be signed by one of them, and descend from the last accepted commit.",
    }),
  ),
  accept: Type.Optional(
    Type.String({
      pattern: "^[0-9a-f]{40}([0-9a-f]{24})?$",
      description: "With signed_by: one commit that does not have to descend from the last accepted commit.",
    }),
  ),
  github: Type.Optional(Github),
};

const Repository = Type.Object(
  {
    name: Type.String({
      pattern: "^[a-z0-9][a-z0-9-]{0,31}$",
      description: "Name of the repository here: its policies are managed by policy-git/NAME.",
    }),
    url: Type.String({ minLength: 1, description: "URL of the repository, in any form that git can fetch from." }),
    ...REPOSITORY,
  },
  { additionalProperties: false },
);
export type RepositoryOptions = Omit<Static<typeof Repository>, "name">;

export const Options = Type.Object(
  {
    url: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "URL of the repository, in any form that git can fetch from. Without it and `repositories` the plugin does nothing.",
      }),
    ),
    ...REPOSITORY,
    repositories: Type.Array(Repository, {
      default: [],
      maxItems: 100,
      description: "More repositories, each with its own policies.",
    }),
    webhook_secret: Type.Optional(
      Type.String({
        minLength: 16,
        description: "Enables POST /v1/policy-sources/git/webhook for requests that are signed with this secret.",
      }),
    ),
  },
  { additionalProperties: false },
);
