import type { DoctorCheck } from "../../../../src/command.ts";

export default {
  find: async () => (await import("../../cli/check-deliveries.ts")).findDeliveryProblems(),
} satisfies DoctorCheck;
