/** Issues Postgres login roles that expire. Each started action gets a role, which is dropped when the action ends. */
import { definePlugin } from "../../src/plugin.ts";
import { Options } from "./issuer-options.ts";
import { createRoleIssuer, type RoleIssuer } from "./role-issuer.ts";

export default definePlugin({
  name: "credentials-postgres",
  needs: ["credentials"],
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
