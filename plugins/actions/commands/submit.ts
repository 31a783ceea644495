import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  position: 1,
  summary: "submit an action",
  load: async () => (await import("../cli/actions.ts")).submit,
} satisfies CommandEntry;
