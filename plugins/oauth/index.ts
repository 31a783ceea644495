/**
 * The authorization server for MCP proxies: users connect MCP clients, which then act for them through a proxy.
 * @needs users, workload-identity
 */
import { defineCorePlugin } from "../../src/core.ts";
import { GrantService } from "./grants.ts";
import { createGrantVerifier } from "./id-jag.ts";
import { oauthRoutes, pageRoutes } from "./routes.ts";
import { ERRORS, GRANT_ENTRY, GrantChange, OAuthOptions, SCOPES } from "./schemas.ts";
import { grantState } from "./state.ts";

export default defineCorePlugin({
  name: "oauth",
  needs: ["users", "workload-identity"],
  options: OAuthOptions,
  scopes: SCOPES,
  errors: ERRORS,
  entries: { [GRANT_ENTRY]: GrantChange },
  folds: [grantState],
  setup(host, options) {
    const grants = new GrantService(host, options);
    const verifyGrant = createGrantVerifier(host, options.issuers);
    const server = { host, options, grants, verifyGrant };
    // Without a resource, there is no authorization server, so that clients do not find one.
    if (options.resources.length === 0) return { routes: pageRoutes(server) };
    return {
      routes: oauthRoutes(server),
      authenticators: [{ name: "access-token", authenticateToken: (value) => grants.authenticate(value) }],
    };
  },
});
