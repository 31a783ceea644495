import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  position: 4,
  summary: "list requests as they arrive, and vote on them",
  load: async () => (await import("../cli/watch/index.ts")).watch,
} satisfies CommandEntry;
