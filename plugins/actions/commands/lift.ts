import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  position: 9,
  summary: "lift the rejection of an action",
  load: async () => (await import("../cli/actions.ts")).liftRejection,
} satisfies CommandEntry;
