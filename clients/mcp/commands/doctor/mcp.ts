import { existsSync } from "node:fs";
import { CommandError, type DoctorCheck, findAvailableKey, serviceUrl } from "../../../../src/command.ts";
import { ProxyUsers } from "../../clients/users.ts";
import { loadProxyConfig, PROXY_FILE } from "../../cli/proxy-flags.ts";

export default {
  see: '"assent mcp doctor" checks the MCP servers of a client',
  async find() {
    if (!existsSync(PROXY_FILE)) return [];
    const check = "mcp";
    try {
      const resource = loadProxyConfig({}, []).config.listen?.resource;
      if (resource === undefined) return [{ check, state: "ok", text: `${PROXY_FILE} is valid` }];
      const url = serviceUrl();
      const users = new ProxyUsers({ url, apiKey: findAvailableKey(url) ?? "", resource, log: () => undefined });
      const fault = await users.findFault();
      return fault === null
        ? [{ check, state: "ok", text: `users can sign in to ${resource}` }]
        : [
            {
              check,
              state: "problem",
              text: `users cannot sign in to ${resource}: ${fault}`,
              fix: 'see "Users who sign in" in docs/mcp.md',
            },
          ];
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      return [{ check, state: "problem", text: error.message }];
    }
  },
} satisfies DoctorCheck;
