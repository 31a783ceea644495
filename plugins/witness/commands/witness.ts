import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "record",
  summary: "run a witness, which cosigns the checkpoints of other logs",
  load: async () => (await import("../witness-command.ts")).witness,
} satisfies CommandEntry;
