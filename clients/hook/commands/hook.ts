import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "clients",
  position: 1,
  summary: "decide on each tool call of a coding agent",
  load: async () => (await import("../cli/hook.ts")).hook,
} satisfies CommandEntry;
