import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "record",
  summary: "compare another system's log with the ledger",
  load: async () => (await import("../reconcile/command.ts")).reconcile,
} satisfies CommandEntry;
