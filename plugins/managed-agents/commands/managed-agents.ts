import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  summary: "answer the tool confirmations of managed agents from decisions",
  load: async () => (await import("../worker-command.ts")).managedAgents,
} satisfies CommandEntry;
