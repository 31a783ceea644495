/** `assent policy import-tools` prints the tools of MCP servers in the format of a policy's `tools:`. */
import { stringify } from "yaml";
import { validatePolicyDocument } from "../../domain/policy/parse/parse.ts";
import type { ToolSchemaDocument } from "../../domain/policy/policy-types.ts";
import { fetchDefinitions } from "../../../clients/mcp/tools/acceptance.ts";
import { INSTRUCTIONS_KEY } from "../../../clients/mcp/tools/accepted-definitions.ts";
import { isObject } from "../../../clients/mcp/transport/rpc-message.ts";
import {
  CommandError,
  EXIT_CODES,
  parseArguments,
  toPrintable,
  usageError,
  printJson,
  type Subcommand,
} from "../command.ts";
import { loadProxyConfig, splitCommand } from "./proxy-flags.ts";

/** Maximum number of items in a policy's `tools`. */
const MAX_TOOLS = 1_000;

export const importTools: Subcommand = {
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
  async run(args, io) {
    const { ours, command } = splitCommand(args);
    const flags = {
      http: { type: "string" },
      config: { type: "string" },
      name: { type: "string" },
      json: { type: "boolean" },
    } as const;
    const {
      values: { json, ...values },
      positionals,
    } = parseArguments(ours, flags);
    if (positionals.length > 0)
      throw usageError(`write the server's command after "--": assent policy import-tools -- ${positionals.join(" ")}`);
    const tools: ToolSchemaDocument[] = [];
    for (const server of loadProxyConfig(values, command).config.servers) {
      const definitions = await fetchDefinitions(server, (line) => io.err(toPrintable(line))).catch(
        (error: unknown) => {
          throw new CommandError(error instanceof Error ? error.message : String(error));
        },
      );
      for (const [operation, { definition }] of definitions) {
        const params = definition["inputSchema"];
        if (operation === INSTRUCTIONS_KEY || !isObject(params)) continue;
        const tool: ToolSchemaDocument = { tool: server.tool, operation, params };
        const fault = findFault(tool);
        if (fault === null) tools.push(tool);
        else io.err(`left out ${toPrintable(operation)}: ${toPrintable(fault)}`);
      }
    }
    if (tools.length === 0) throw new CommandError("the servers have no tools with a schema of their parameters");
    if (tools.length > MAX_TOOLS)
      throw new CommandError(`the servers have ${tools.length} tools; a policy can declare ${MAX_TOOLS}`);
    if (json === true) printJson(io, { tools });
    else io.out(stringify({ tools }, { lineWidth: 120, aliasDuplicateObjects: false }).trimEnd());
    return EXIT_CODES.ok;
  },
};

/** Returns why a policy cannot declare this tool; null if it can declare the tool. */
function findFault(tool: ToolSchemaDocument): string | null {
  const policy = { policy: "imported", tools: [tool], rules: [{ name: "any", effect: "deny" }] };
  return validatePolicyDocument(policy)[0]?.detail ?? null;
}
