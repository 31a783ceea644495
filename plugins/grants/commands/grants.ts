import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "list grants, or revoke one",
  load: async () => (await import("../grants-command.ts")).grants,
} satisfies CommandEntry;
