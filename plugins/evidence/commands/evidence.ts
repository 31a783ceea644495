import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "record",
  summary: "write a pack of records that an auditor verifies offline",
  load: async () => (await import("../evidence-command.ts")).evidence,
} satisfies CommandEntry;
