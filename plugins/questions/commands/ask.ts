import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  position: 7,
  summary: "ask the agent of a pending action a question",
  load: async () => (await import("../cli/questions.ts")).ask,
} satisfies CommandEntry;
