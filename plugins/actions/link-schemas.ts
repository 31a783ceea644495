/** What goes in and out where one person decides by a link. */
import { Type, type Static } from "@sinclair/typebox";
import { ActionRecord, ApprovalBody, Nullable } from "./schemas.ts";

export const LinkBody = Type.Object(
  {
    token: Type.String({
      minLength: 1,
      maxLength: 2048,
      description: "Link token: what stands behind the `#` of the link.",
    }),
  },
  { additionalProperties: false },
);
export type LinkBody = Static<typeof LinkBody>;

export const LinkVerdictBody = Type.Object(
  {
    ...ApprovalBody.properties,
    token: Type.String({
      minLength: 1,
      maxLength: 4096,
      description: "Link token: what stands behind the `#` of the link.",
    }),
  },
  { additionalProperties: false },
);

export const LinkAnswer = Type.Object(
  {
    approver: Type.String({ description: "Principal that the link was sent to." }),
    refusal: Nullable(
      Type.String({
        description: "Why this approver cannot decide, where no verdict of anybody is the reason; null when they may.",
      }),
    ),
    action: Type.Pick(
      ActionRecord,
      [
        "id",
        "agent_id",
        "tool",
        "operation",
        "params",
        "context",
        "status",
        "reason",
        "risk_level",
        "policy",
        "rule",
        "shown_first",
        "request_hash",
        "approvals",
        "approvals_needed",
        "expires_at",
        "created_at",
      ],
      { title: "LinkedAction", additionalProperties: false },
    ),
  },
  { title: "LinkAnswer", additionalProperties: false },
);
