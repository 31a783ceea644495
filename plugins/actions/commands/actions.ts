import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  position: 10,
  summary: "list actions, or show one",
  load: async () => (await import("../cli/actions.ts")).actions,
} satisfies CommandEntry;
