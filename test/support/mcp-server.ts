/**
 * An MCP server built with the official package, for both protocol generations. It writes each call that it receives to
 * a file.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { Server, inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

/** Reads the variable at each call, because a test can run this server inside its own process. */
const record = (line: Record<string, unknown>): void =>
  appendFileSync(process.env["MCP_RECORD"] as string, `${JSON.stringify(line)}\n`);
/**
 * Path of a file with lines `name description`, which replace descriptions of tools. It is read for each list request.
 */
const DESCRIPTIONS = process.env["MCP_DESCRIPTIONS"] ?? "";

function descriptions(): Map<string, string> {
  try {
    const lines = readFileSync(DESCRIPTIONS, "utf8")
      .split("\n")
      .filter((line) => line !== "");
    return new Map(lines.map((line) => [line.split(" ")[0] as string, line.split(" ").slice(1).join(" ")]));
  } catch {
    return new Map();
  }
}

const TOOLS = [
  { name: "echo", description: "Says what it is told.", annotations: { readOnlyHint: true } },
  { name: "write", description: "Writes." },
  { name: "forbidden", description: "Is denied by the policy." },
  { name: "slow", description: "Tells its progress, and ends when it is cancelled." },
  { name: "ask", description: "Asks the user for a name." },
  { name: "broken", description: "Fails." },
  {
    name: "placed",
    description: "Says where, also in a header.",
    inputSchema: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
  },
  {
    name: "typed",
    description: "Answers in a form.",
    outputSchema: {
      type: "object",
      properties: { n: { type: "number" } },
      required: ["n"],
      additionalProperties: false,
    },
  },
]
  .map((tool) => ({ inputSchema: { type: "object" }, ...tool }))
  .filter(({ name }) => process.env["MCP_TOOLS"]?.split(",").includes(name) ?? true);

const text = (said: string) => ({ content: [{ type: "text" as const, text: said }] });

export function server(): Server {
  const made = new Server(
    { name: "fixture", version: "1.0.0" },
    {
      capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {}, logging: {} },
      instructions: "Use echo.",
    },
  );
  made.setRequestHandler("tools/list", async () => {
    while (existsSync(process.env["MCP_HANGS"] ?? "")) await new Promise((resolve) => setTimeout(resolve, 50));
    if (process.env["MCP_NO_LIST"] !== undefined) throw new Error("there is no list today");
    const changed = descriptions();
    const tools = TOOLS.map((tool) => ({ ...tool, description: changed.get(tool.name) ?? tool.description }));
    const added = [...changed].filter(([name]) => !TOOLS.some((tool) => tool.name === name));
    return {
      tools: [
        ...tools,
        ...added.map(([name, description]) => ({ name, description, inputSchema: { type: "object" } })),
      ],
    } as never;
  });
  made.setRequestHandler("tools/call", async (request, ctx) => {
    const { name, arguments: given } = request.params;
    const { signal, inputResponses, _meta } = ctx.mcpReq;
    if (name === "ask" && inputResponses?.["name"] === undefined && ctx.mcpReq.envelope !== undefined)
      return inputRequired({
        inputRequests: { name: inputRequired.elicit(QUESTION) },
        requestState: "round-1",
      }) as never;
    record({ name, given, meta: _meta ?? null });
    if (given?.["die"] === true) process.exit(1);
    if (name === "typed") return { ...text("1"), structuredContent: { n: 1 } };
    if (name === "broken") return { ...text("it broke"), isError: true };
    if (name === "ask") {
      const answer = (inputResponses?.["name"] ?? (await ctx.mcpReq.elicitInput(QUESTION))) as {
        action: string;
        content?: { name?: string };
      };
      return text(`${answer.action} ${answer.content?.name ?? ""}`.trim());
    }
    if (name === "slow") {
      const token = _meta?.progressToken;
      for (let i = 1; i <= 50 && !signal.aborted; i++) {
        if (token !== undefined)
          await ctx.mcpReq.notify({
            method: "notifications/progress",
            params: { progressToken: token, progress: i, total: 50 },
          });
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      record({ name: signal.aborted ? "slow was cancelled" : "slow came to its end" });
      return text("done");
    }
    return text(JSON.stringify(given ?? null));
  });
  made.setRequestHandler("logging/setLevel", async (request) => {
    while (existsSync(process.env["MCP_HANGS"] ?? "")) await new Promise((resolve) => setTimeout(resolve, 50));
    record({ name: "level", given: request.params.level });
    return {};
  });
  made.setRequestHandler("resources/list", () => ({ resources: [{ uri: "note://one", name: "one" }] }));
  made.setRequestHandler("resources/read", (request) => {
    record({ name: "read", given: request.params.uri });
    return { contents: [{ uri: request.params.uri, text: "a note" }] };
  });
  made.setRequestHandler("prompts/list", () => ({ prompts: [{ name: "greet" }] }));
  made.setRequestHandler("prompts/get", (request) => ({
    messages: [{ role: "user" as const, content: { type: "text" as const, text: `prompt ${request.params.name}` } }],
  }));
  return made;
}

const QUESTION = {
  mode: "form" as const,
  message: "What is your name?",
  requestedSchema: { type: "object" as const, properties: { name: { type: "string" as const } } },
};

// A test keeps the server down by creating this file.
if (existsSync(process.env["MCP_AWAY"] ?? "")) process.exit(1);
if (process.argv[2] === "stdio") serveStdio(server, { legacy: process.argv[3] === "modern-only" ? "reject" : "serve" });
