import { existsSync } from "node:fs";
import { programCommand, type DoctorCheck } from "../../../../src/command.ts";

export default {
  see: '"assent egress doctor" checks the hosts and credentials of egress.yaml',
  find: () =>
    existsSync("egress.yaml")
      ? [
          {
            check: "egress",
            state: "note",
            text: "this folder has an egress.yaml",
            fix: `"${programCommand()} egress doctor" checks its hosts and credentials`,
          },
        ]
      : [],
} satisfies DoctorCheck;
