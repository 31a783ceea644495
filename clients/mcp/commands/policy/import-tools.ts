/** `assent policy import-tools` prints the tools of MCP servers in the format of a policy's `tools`. */
import type { Subcommand } from "../../../../src/command.ts";

export default {
  summary: "print the tools of an MCP server as tools: of a policy",
  help: `usage: assent policy import-tools [--name NAME] [--json] (-- COMMAND | --http URL | --config FILE)

Asks an MCP server for its tools and prints them as YAML. Paste the output into a policy: "assent policy check" then checks
the conditions of its rules against the parameters. Needs no service and changes nothing.

  -- COMMAND     command that starts the server
  --http URL     server over HTTP
  --config FILE  all servers of a file for "assent mcp proxy" (assent-mcp.yaml)
  --name NAME    name of the server, which determines the tool of its actions
  --json         print JSON instead of YAML

examples:
  assent policy import-tools -- npx -y @modelcontextprotocol/server-filesystem /srv
  assent policy import-tools --http https://mcp.example.com/mcp > tools.yaml`,
  run: async (args, io) => (await import("../../cli/import-tools.ts")).importTools(args, io),
} satisfies Subcommand;
