import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "list emergency approvals, or review one",
  load: async () => (await import("../break-glass-command.ts")).breakGlass,
} satisfies CommandEntry;
