/**
 * The client that `@modelcontextprotocol/conformance` starts for a scenario. It connects through the proxy to the
 * server whose address is the last argument.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { ASSENT } from "./process.ts";

const url = process.argv.at(-1) as string;
const config = join(process.env["ASSENT_STATE"] as string, "conformance.yaml");
writeFileSync(config, JSON.stringify({ servers: { conformance: { url } } }));
const client = new Client(
  { name: "conformance", version: "1.0.0" },
  { capabilities: { elicitation: { form: { applyDefaults: true } } } },
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
for (const { name } of tools) await client.callTool({ name, arguments: name === "add_numbers" ? { a: 5, b: 3 } : {} });
await client.close();
