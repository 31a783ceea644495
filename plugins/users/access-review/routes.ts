/** `GET /v1/access-review`. */
import { closed, type CoreHost } from "../../../src/core.ts";
import { defineRoute, Type } from "../../../src/plugin.ts";
import { OPENAPI_TAG } from "../session-routes.ts";
import type { Sessions } from "../sessions.ts";
import { renderCsv } from "./csv.ts";
import { reviewAccess } from "./review.ts";

const Text = Type.String();
const Nullable = Type.Union([Text, Type.Null()]);
const Texts = Type.Array(Text);
const Patterns = Type.Union([Texts, Type.Null()]);
const Count = Type.Integer({ minimum: 0 });

const Query = Type.Object(
  {
    days: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 366, description: "Length of the period that is reviewed; default 90." }),
    ),
    format: Type.Optional(
      Type.Union([Type.Literal("json"), Type.Literal("csv")], { description: "Form of the response; default `json`." }),
    ),
  },
  closed,
);

const Limit = Type.Object(
  {
    agents: Patterns,
    tools: Patterns,
    also: Type.Array(Type.Object({ agents: Patterns, tools: Patterns }, closed), {
      description: "Other limits that an action must also meet, such as the limits of the user who made the key.",
    }),
  },
  closed,
);

/** What one user or key can approve now. */
const RIGHTS = {
  groups: Texts,
  may_approve: Type.Boolean(),
  limits: Type.Union([Type.Array(Limit), Type.Null()], {
    description:
      "The principal can approve actions that meet at least one of these limits. Null if it can approve all actions, or none.",
  }),
  delegators: Type.Array(Text, { description: "Principals of the users on whose behalf they can approve now." }),
};
export const RightsRecord = Type.Object(RIGHTS, closed);

const Row = Type.Object(
  {
    kind: Type.Union([Type.Literal("user"), Type.Literal("key"), Type.Literal("voter")], {
      description:
        "`voter`: someone who voted but is neither a user nor a live key, such as a revoked key without an owner.",
    }),
    id: Nullable,
    name: Text,
    principal: Type.String({
      description:
        "Principal for whom the votes count. A user and their keys have the same principal, and so the same votes.",
    }),
    roles: Texts,
    ...RIGHTS,
    agent_id: Nullable,
    approvals: Count,
    rejections: Count,
    break_glass: Type.Integer({
      minimum: 0,
      description: "Emergency approvals without other approvers (break-glass).",
    }),
    approval_rate: Type.Union([Type.Number(), Type.Null()], { description: "Share of approvals among the votes." }),
    median_seconds: Type.Union([Count, Type.Null()], { description: "Median time from submission to vote." }),
    last_used_at: Nullable,
    unused: Type.Boolean({
      description: "Whether the user or key is active, was created before the period and was not used in it.",
    }),
    ended_at: Nullable,
  },
  closed,
);

const OpenReviews = Type.Array(Text, { description: "Ids of emergency approvals that no one has reviewed." });

export function accessReviewRoute(host: CoreHost, sessions: Sessions) {
  return defineRoute({
    method: "GET",
    path: "/v1/access-review",
    tag: OPENAPI_TAG,
    summary: "Review who can approve what, who did, and what is unused",
    description:
      "Lists users, live keys and other voters, with their votes in the period. A member of a group with limits sees only votes, reviews and keys within the limits. Reads every entry of the period.",
    scope: ["users:read", "users:manage"],
    query: Query,
    responses: {
      200: {
        description: "The review.",
        schema: Type.Object({ since: Text, until: Text, open_reviews: OpenReviews, rows: Type.Array(Row) }, closed),
        otherContentTypes: ["text/csv"],
      },
    },
    async handle({ query: { days = 90, format = "json" }, credential }) {
      const review = await reviewAccess(host, sessions, days, credential);
      if (format === "json") return { status: 200, json: review };
      return {
        status: 200,
        text: renderCsv(review.rows),
        headers: {
          "Content-Type": "text/csv; charset=utf-8; header=present",
          "Content-Disposition": `attachment; filename="access-review-${review.until.slice(0, 10)}.csv"`,
        },
      };
    },
  });
}
