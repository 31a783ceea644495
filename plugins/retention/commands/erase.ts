import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "erase the request data of actions permanently",
  load: async () => (await import("../erase-command.ts")).erase,
} satisfies CommandEntry;
