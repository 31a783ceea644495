import type { DoctorCheck } from "../../../../src/command.ts";

export default {
  see: '"assent devices list" shows machines that are silent or lack a hook',
  find: async () => (await import("../../cli/devices.ts")).findDeviceProblems(),
} satisfies DoctorCheck;
