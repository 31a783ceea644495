/**
 * The client that `@modelcontextprotocol/conformance` starts for a scenario, with the protocol revision as argument. It
 * connects through the proxy to the server whose address is the last argument.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { ASSENT } from "./process.ts";

const [version, url] = process.argv.slice(-2) as [string, string];
/** The calls that the scenario asks for; by default, one call of each tool. */
const { toolCalls } = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}") as {
  toolCalls?: { name: string; arguments: Record<string, unknown> }[];
};
const config = join(process.env["ASSENT_STATE"] as string, "conformance.yaml");
writeFileSync(config, JSON.stringify({ servers: { conformance: { url } } }));
const client = new Client(
  { name: "conformance", version: "1.0.0" },
  {
    capabilities: { elicitation: { form: { applyDefaults: true } } },
    versionNegotiation: { mode: version === "2025-11-25" ? "legacy" : { pin: version } },
  },
);
client.setRequestHandler("elicitation/create", () => ({ action: "accept" as const, content: {} }));
await client.connect(
  new StdioClientTransport({
    command: process.execPath,
    args: [...ASSENT, "mcp", "proxy", "--config", config],
    env: process.env as Record<string, string>,
    stderr: "inherit",
  }),
);
const { tools } = await client.listTools();
const argumentsOf: Record<string, Record<string, unknown>> = {
  add_numbers: { a: 5, b: 3 },
  valid_tool: { region: "us" },
};
for (const call of toolCalls ?? tools.map(({ name }) => ({ name, arguments: argumentsOf[name] ?? {} })))
  await client.callTool(call);
await client.close();
