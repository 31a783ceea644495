import { existsSync } from "node:fs";
import { configFiles } from "../../../../clients/hook/hook-config.ts";
import type { DoctorCheck } from "../../../../src/command.ts";

export default {
  see: '"assent devices list" shows machines that are silent or lack a hook',
  find: async () =>
    configFiles(process.env).some((path) => existsSync(path))
      ? (await import("../../cli/devices.ts")).findDeviceProblems()
      : [],
} satisfies DoctorCheck;
