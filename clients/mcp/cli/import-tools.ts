import { stringify } from "yaml";
import {
  CommandError,
  EXIT_CODES,
  findPolicyFault,
  parseArguments,
  printJson,
  toPrintable,
  usageError,
  type Output,
} from "../../../src/command.ts";
import { fetchDefinitions } from "../tools/acceptance.ts";
import { INSTRUCTIONS_KEY } from "../tools/accepted-definitions.ts";
import { isObject, type JsonObject } from "../transport/rpc-message.ts";
import { loadProxyConfig, splitCommand } from "./proxy-flags.ts";

/** Maximum number of items in a policy's `tools`. */
const MAX_TOOLS = 1_000;

/** A tool in the format of a policy's `tools`. */
interface ToolSchema {
  tool: string;
  operation: string;
  params: JsonObject;
}

export async function importTools(args: string[], io: Output): Promise<number> {
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
  const tools: ToolSchema[] = [];
  for (const server of loadProxyConfig(values, command).config.servers) {
    const definitions = await fetchDefinitions(server, (line) => io.err(toPrintable(line))).catch((error: unknown) => {
      throw new CommandError(error instanceof Error ? error.message : String(error));
    });
    for (const [operation, { definition }] of definitions) {
      const params = definition["inputSchema"];
      if (operation === INSTRUCTIONS_KEY || !isObject(params)) continue;
      const tool: ToolSchema = { tool: server.tool, operation, params };
      const fault = await findFault(tool);
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
}

/** Resolves to why a policy cannot declare this tool; null if it can. */
function findFault(tool: ToolSchema): Promise<string | null> {
  return findPolicyFault({ policy: "imported", tools: [tool], rules: [{ name: "any", effect: "deny" }] });
}
