import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  summary: "say that you are looking at a pending action, or hand it over",
  load: async () => (await import("../claim-command.ts")).claim,
} satisfies CommandEntry;
