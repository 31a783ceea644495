import type { CommandEntry } from "../../../src/command.ts";

export default {
  group: "rights",
  summary: "enrol this machine, report its hooks, list devices, or end one",
  load: async () => (await import("../cli/devices.ts")).devices,
} satisfies CommandEntry;
