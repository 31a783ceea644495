import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "clients",
  position: 2,
  summary: "run in the background for this user's hooks, so that they answer faster",
  load: async () => (await import("../cli/hook.ts")).hookd,
} satisfies CommandEntry;
