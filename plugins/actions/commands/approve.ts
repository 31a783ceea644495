import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  position: 2,
  summary: "approve a pending action",
  load: async () => (await import("../cli/actions.ts")).createApprove(),
} satisfies CommandEntry;
