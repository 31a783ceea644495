import { existsSync } from "node:fs";
import { programCommand, type DoctorCheck } from "../../../../src/command.ts";
import { configFiles } from "../../hook-config.ts";

export default {
  see: '"assent hook doctor" checks the hook of a coding agent',
  find: () =>
    configFiles(process.env).some((path) => existsSync(path))
      ? [
          {
            check: "hook",
            state: "note",
            text: "a coding agent has a hook here",
            fix: `"${programCommand()} hook doctor --host HOST" checks it`,
          },
        ]
      : [],
} satisfies DoctorCheck;
