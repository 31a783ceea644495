import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "keep actions from being erased, list legal holds, or release one",
  load: async () => (await import("../cli/hold.ts")).hold,
} satisfies CommandEntry;
