import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "erase the request data of actions permanently",
  load: async () => (await import("../cli/erase.ts")).erase,
} satisfies CommandEntry;
