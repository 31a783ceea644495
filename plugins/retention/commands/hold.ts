import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "keep actions from being erased, list legal holds, or release one",
  load: async () => (await import("../hold-command.ts")).hold,
} satisfies CommandEntry;
