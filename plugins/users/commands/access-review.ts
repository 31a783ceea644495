import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "review who can approve what, who did, and what is unused",
  load: async () => (await import("../access-review/command.ts")).accessReview,
} satisfies CommandEntry;
