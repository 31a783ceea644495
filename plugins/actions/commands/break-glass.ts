import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "list emergency approvals, or review one",
  load: async () => (await import("../cli/break-glass.ts")).breakGlass,
} satisfies CommandEntry;
