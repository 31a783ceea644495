import type { DoctorCheck } from "../../../../src/command.ts";

export default { see: '"assent devices list" shows machines that are silent or lack a hook' } satisfies DoctorCheck;
