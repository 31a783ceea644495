import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "start a task of an agent, list tasks, or end one",
  load: async () => (await import("../task-command.ts")).task,
} satisfies CommandEntry;
