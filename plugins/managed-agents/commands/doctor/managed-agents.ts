import type { DoctorCheck } from "../../../../src/command.ts";

export default {
  see: '"assent managed-agents --once" checks the keys of the vendor and of the service, and answers what is decided',
} satisfies DoctorCheck;
