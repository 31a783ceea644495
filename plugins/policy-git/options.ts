/** Options of the plugin. */
import { Type, type Static } from "@sinclair/typebox";

export const Options = Type.Object(
  {
    url: Type.Optional(
      Type.String({
        minLength: 1,
        description: "URL of the repository, in any form that git can fetch from. Without it the plugin does nothing.",
      }),
    ),
    ref: Type.Optional(
      Type.String({
        minLength: 1,
        pattern: "^[^-\\s:?*\\[\\\\^~][^\\s:?*\\[\\\\^~]*$",
        description: "Branch or tag; the remote's HEAD when absent.",
      }),
    ),
    folder: Type.String({ default: "", description: "Folder inside the repository; its root when absent." }),
    recursive: Type.Boolean({ default: false, description: "Include subfolders." }),
    interval_seconds: Type.Number({
      default: 60,
      minimum: 1,
      maximum: 86_400,
      description: "How often the repository is polled.",
    }),
    timeout_seconds: Type.Number({ default: 30, minimum: 1, maximum: 600, description: "Timeout of one git command." }),
    username: Type.Optional(
      Type.String({ minLength: 1, description: "For http(s); `git` when absent and there is a password." }),
    ),
    password: Type.Optional(
      Type.String({ minLength: 1, description: "Password or token for http(s), best as ${VARIABLE}." }),
    ),
    password_file: Type.Optional(
      Type.String({ minLength: 1, description: "File with the password or token; read before each fetch." }),
    ),
    ssh_key_file: Type.Optional(
      Type.String({ minLength: 1, description: "Private key for ssh, without a passphrase." }),
    ),
    known_hosts_file: Type.Optional(
      Type.String({
        minLength: 1,
        description: "Host keys for ssh; the user's when absent. Unknown hosts are refused.",
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
        description: "With signed_by: one commit that need not descend from the last accepted commit.",
      }),
    ),
    webhook_secret: Type.Optional(
      Type.String({
        minLength: 16,
        description: "Enables POST /v1/policy-sources/git/webhook for requests that are signed with this secret.",
      }),
    ),
  },
  { additionalProperties: false },
);
export type Options = Static<typeof Options>;
