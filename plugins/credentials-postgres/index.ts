/** Issues Postgres login roles that expire: one role per started action, dropped when the action ends. */
import type { Static } from "@sinclair/typebox";
import { definePlugin, Type } from "../../src/plugin.ts";
import { createRoleIssuer, type RoleIssuer } from "./role-issuer.ts";

const Patterns = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: 100, description });

const Issuer = Type.Object(
  {
    url: Type.String({
      pattern: "^postgres(ql)?://",
      description: "Database and a role with CREATEROLE that may grant `role`.",
    }),
    tools: Patterns("Patterns of the tools whose actions get a login role."),
    operations: Patterns("Patterns of the operations whose actions get a login role."),
    role: Type.String({ minLength: 1, maxLength: 63, description: "Role whose rights the login role has." }),
    valid_seconds: Type.Integer({ default: 300, minimum: 10, maximum: 86_400, description: "Longest lifetime." }),
    connections: Type.Integer({ default: 2, minimum: 1, maximum: 100, description: "Connections at a time." }),
    host: Type.Optional(Type.String({ minLength: 1, description: "Host for the tool, if it differs from the URL's." })),
    port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, description: "Port for the tool." })),
  },
  { additionalProperties: false },
);
export type RoleIssuerOptions = Static<typeof Issuer>;

const Options = Type.Object(
  { issuers: Type.Record(Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,62}$" }), Issuer, { default: {} }) },
  { additionalProperties: false },
);

export default definePlugin({
  name: "credentials-postgres",
  options: Options,
  setup(host, options) {
    const issuers: RoleIssuer[] = Object.entries(options.issuers).map(([name, issuer]) =>
      createRoleIssuer(name, issuer, host.log),
    );
    return {
      credentialIssuers: issuers,
      async start() {
        await Promise.resolve();
        for (const issuer of issuers) issuer.startCleanup();
      },
      async stop() {
        await Promise.all(issuers.map((issuer) => issuer.close()));
      },
    };
  },
});
