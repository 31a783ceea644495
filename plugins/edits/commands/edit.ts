import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  position: 6,
  summary: "change parameters of a pending action, where its rules allow it",
  load: async () => (await import("../cli/edit.ts")).edit,
} satisfies CommandEntry;
