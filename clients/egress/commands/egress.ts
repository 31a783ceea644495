import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "clients",
  position: 4,
  summary: "run an agent without the credentials of the APIs that it calls",
  load: async () => (await import("../cli/egress.ts")).egress,
} satisfies CommandEntry;
