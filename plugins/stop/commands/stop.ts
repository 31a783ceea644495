import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "stop actions in an emergency, list stops, or lift one",
  load: async () => (await import("../stop-command.ts")).stop,
} satisfies CommandEntry;
