import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "clients",
  position: 3,
  summary: "put policies in front of MCP servers",
  load: async () => (await import("../cli/mcp.ts")).mcp,
} satisfies CommandEntry;
