import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  position: 8,
  summary: "answer an approver's question about a pending action",
  load: async () => (await import("../cli/questions.ts")).answer,
} satisfies CommandEntry;
