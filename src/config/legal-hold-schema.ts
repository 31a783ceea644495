/** The key `legal_hold` of `assent.yaml`. */
import { Type } from "@sinclair/typebox";

export const LegalHoldSchema = Type.Object(
  {
    release_approvals: Type.Integer({
      default: 1,
      minimum: 1,
      maximum: 10,
      description: "Number of people needed to release a legal hold. One person can place one.",
    }),
  },
  { default: {}, additionalProperties: false, description: "Legal holds, which prevent erasures." },
);
