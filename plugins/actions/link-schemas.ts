/** Schemas of the routes that people use to vote by link. */
import { Type, type Static } from "@sinclair/typebox";
import { closed, countSchema, orNull, textSchema } from "../../src/core.ts";
import { ActionRecord, ApprovalBody, type VoteFeatures, voteMembers } from "./schemas.ts";

export const LinkBody = Type.Object(
  {
    token: Type.String({
      minLength: 1,
      maxLength: 2048,
      description: "Link token: the part of the link after `#`.",
    }),
  },
  { additionalProperties: false },
);
export type LinkBody = Static<typeof LinkBody>;

/** Returns the body of a vote by link. Only a facade that has verified the voter can send `grant`. */
export const linkVoteBody = ({ voteAddition }: VoteFeatures) =>
  Type.Object(
    {
      approve: ApprovalBody.properties.approve,
      reason: ApprovalBody.properties.reason,
      shown: Type.String({
        pattern: "^[0-9a-f]{64}$",
        description:
          "`shown` of the response that the voter read. The vote is rejected if the request, its preview or the questions to the agent have changed since.",
      }),
      token: Type.String({
        minLength: 1,
        maxLength: 4096,
        description: "Link token: the part of the link after `#`.",
      }),
      ...voteMembers({ voteAddition, soleApproval: null }),
    },
    { additionalProperties: false },
  );

export const LinkResponse = Type.Object(
  {
    shown: orNull(
      Type.String({
        description:
          "Digest of the request, its preview and the questions to the agent, which the vote must contain; null unless the action is pending.",
      }),
    ),
    approver: Type.String({ description: "Principal that the link was sent to: `user:<id>`." }),
    names: Type.Record(Type.String(), Type.String(), {
      description: "Display names of the principals in this response, keyed by principal.",
    }),
    refusal: orNull(
      Type.String({
        description: "Why this approver cannot vote, apart from earlier votes; null if they may.",
      }),
    ),
    signature_required: Type.Boolean({
      description: "Whether the rule accepts only votes that are signed with a passkey, so that no link can vote.",
    }),
    grants: orNull(
      Type.Object(
        { count: countSchema("Maximum number of uses."), for_seconds: countSchema("Maximum duration in seconds.") },
        {
          additionalProperties: false,
          description:
            "The largest grant that the rules allow with an approval; null if none, if the action is part of a plan, or unless it is pending. A link cannot grant.",
        },
      ),
    ),
    offers: Type.Optional(
      Type.Array(
        Type.Object(
          { scope: textSchema("Condition in CEL."), text: textSchema("What it covers, safe to display.") },
          closed,
        ),
        { description: "Scopes that an approval can grant. Only for a facade that has verified the voter." },
      ),
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
        "questions",
        "proposed",
        "status",
        "reason",
        "risk_level",
        "policy",
        "rule",
        "preview",
        "shown_first",
        "unusual",
        "pins",
        "differs_from",
        "earlier_votes",
        "compared_with",
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
