/** Issues Postgres login roles that expire: one role per started action, dropped when the action ends. */
import { definePlugin, Type } from "../../src/plugin.ts";
import { RoleIssuerOptions } from "./issuer-options.ts";
import { createRoleIssuer, type RoleIssuer } from "./role-issuer.ts";

const Options = Type.Object(
  { issuers: Type.Record(Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,62}$" }), RoleIssuerOptions, { default: {} }) },
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
