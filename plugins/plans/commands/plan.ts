import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "actions",
  position: 5,
  summary: "submit several actions as a plan, list and show plans, vote on them and cancel them",
  load: async () => (await import("../cli/plan.ts")).plan,
} satisfies CommandEntry;
