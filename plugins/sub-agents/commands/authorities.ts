import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "let another agent act with a part of an agent's rights, list such authorities, or end one",
  load: async () => (await import("../authorities-command.ts")).authorities,
} satisfies CommandEntry;
