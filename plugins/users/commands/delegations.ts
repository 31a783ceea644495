import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "list delegations of approvals, or revoke one",
  load: async () => (await import("../delegations-command.ts")).delegations,
} satisfies CommandEntry;
