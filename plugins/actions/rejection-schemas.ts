/** Schemas of the denial in an action's record, and of the body that lifts a rejection. */
import { Type, type Static } from "@sinclair/typebox";
import { closed, DENIED_BY, orNull, textSchema, timeSchema } from "../../src/core.ts";

export const LiftRejectionBody = Type.Object(
  { reason: Type.Optional(Type.String({ maxLength: 2000, description: "Recorded in the ledger." })) },
  closed,
);

const Rejection = Type.Object(
  {
    action_id: textSchema("The action that was rejected: this one, or an earlier one."),
    approver: textSchema("Principal: `user:<id>` or `key:<id>`; `reviewer:<name>` for a machine reviewer."),
    reason: orNull(textSchema("What the approver wrote, as one line of at most 500 characters.")),
    rejected_at: timeSchema("When the action was rejected."),
    holds_until: orNull(
      timeSchema(
        "End of the time in which the same request is denied, unless an approver lifts the rejection. Null if it can be submitted again.",
      ),
    ),
  },
  closed,
);
export type Rejection = Static<typeof Rejection>;

/** Members of an action's record. */
export const DENIAL_RESPONSE_FIELDS = {
  denied_by: Type.Union([...DENIED_BY.map((by) => Type.Literal(by)), Type.Null()], {
    description:
      "Who denied the action: the policies, a person, a machine reviewer, an earlier rejection of the same request, or a stop. Null unless `status` is denied.",
  }),
  rejection: Type.Union([Rejection, Type.Null()], {
    description: "Who rejected it and why, if `denied_by` is person, reviewer or earlier_rejection; else null.",
  }),
};
