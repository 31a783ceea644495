/** The key `legal_hold` of `assent.yaml`. */
import { Type } from "@sinclair/typebox";

export const LegalHoldSchema = Type.Object(
  {
    release_approvals: Type.Integer({
      default: 1,
      minimum: 1,
      maximum: 10,
      description: "Number of people who must release a legal hold. One person is enough to place it.",
    }),
  },
  { default: {}, additionalProperties: false, description: "Legal holds, which prevent erasures." },
);
