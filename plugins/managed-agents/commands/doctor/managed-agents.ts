import type { DoctorCheck } from "../../../../src/command.ts";

export default {
  see: '"assent managed-agents doctor" checks the keys and the permission policies of managed agents',
} satisfies DoctorCheck;
