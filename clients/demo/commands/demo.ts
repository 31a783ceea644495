import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "clients",
  position: 5,
  summary: "play a day of a support desk against a new service",
  load: async () => (await import("../cli/demo.ts")).demo,
} satisfies CommandEntry;
