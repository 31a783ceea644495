import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  position: 3,
  summary: "deny a pending action",
  load: async () => (await import("../cli/actions.ts")).deny,
} satisfies CommandEntry;
