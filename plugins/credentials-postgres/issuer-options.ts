/** Options of the issuers of Postgres login roles. */
import { credentialIssuerOptions, type Static, Type } from "../../src/plugin.ts";

export const Options = credentialIssuerOptions({
  url: Type.String({
    pattern: "^postgres(ql)?://",
    description: "Database, and a role with CREATEROLE that may grant `role`.",
  }),
  role: Type.String({ minLength: 1, maxLength: 63, description: "Role whose rights the login role has." }),
  valid_seconds: Type.Integer({ default: 300, minimum: 10, maximum: 86_400, description: "Longest lifetime." }),
  connections: Type.Integer({ default: 2, minimum: 1, maximum: 100, description: "Connections at a time." }),
  host: Type.Optional(Type.String({ minLength: 1, description: "Host for the tool, if it differs from the URL's." })),
  port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, description: "Port for the tool." })),
});

/** Options of one issuer. */
export type RoleIssuerOptions = Static<typeof Options>["issuers"][string];
