/** Break-glass: in an emergency, one person approves without the other approvers, and another person reviews it. */
import { closed, type CoreHost, defineCorePlugin, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { defineRoute, nextLink, PAGE_QUERY, slicePage, type Static, toRfc3339, Type } from "../../src/plugin.ts";
import { createBreakGlassAuditor } from "./audit.ts";
import { canSeeUse, reviewBreakGlass } from "./review.ts";
import { ERRORS, soleApproval } from "./sole-approval.ts";
import { BREAK_GLASS_ENTRY, breakGlassState, type BreakGlassUse } from "./state.ts";

const TAG = "actions";
const Status = Type.Union([Type.Literal("open"), Type.Literal("reviewed")]);
const Query = Type.Object({ status: Type.Optional(Status), ...PAGE_QUERY }, closed);
const Params = Type.Object({ id: Type.String() }, closed);
const Body = Type.Object(
  {
    comment: Type.String({
      minLength: 1,
      maxLength: 2000,
      description: "What the review found. Recorded in the ledger, where it stays after an erasure.",
    }),
  },
  closed,
);
const UseRecord = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    status: Status,
    action_id: Type.String({ format: "uuid" }),
    agent_id: Type.String(),
    tool: Type.String(),
    operation: Type.String(),
    approver: textSchema("Principal of the person who approved without other approvers."),
    reason: textSchema("Why it could not wait."),
    used_at: timeSchema("Time of the approval."),
    review: orNull(
      Type.Object(
        { reviewer: textSchema("Principal."), comment: Type.String(), reviewed_at: timeSchema("Time of the review.") },
        closed,
      ),
    ),
  },
  { title: "BreakGlassApproval", ...closed },
);
const UseList = Type.Object({ break_glass: Type.Array(UseRecord), next_cursor: orNull(Type.String()) }, closed);

export default defineCorePlugin({
  name: "break-glass",
  needs: ["actions"],
  errors: ERRORS,
  records: { break_glass: BREAK_GLASS_ENTRY },
  folds: [breakGlassState],
  auditors: [createBreakGlassAuditor],
  soleApproval,
  setup: (host) => ({
    routes: routes(host),
    gauges: [
      {
        name: "assent_break_glass_reviews_open",
        help: "Emergency approvals that no one has reviewed.",
        labels: [],
        read: async () => [{ labels: {}, value: (await host.state(breakGlassState)).open.size }],
      },
    ],
  }),
});

function routes(host: CoreHost) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/break-glass",
      tag: TAG,
      summary: "List break-glass approvals, newest first",
      description:
        "Emergency approvals by one person, without other approvers. `status=open` lists those that await a review.",
      scope: ["approvals:decide", "actions:read"],
      query: Query,
      responses: { 200: { description: "A page.", schema: UseList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query, credential }) {
        const { all, open } = await host.state(breakGlassState);
        const listed = [...(query.status === "open" ? open : all).values()]
          .filter((use) => canSeeUse(use, credential) && (query.status !== "reviewed" || use.review !== null))
          .map((use) => ({ ...use, created_at: use.used_at }))
          .reverse();
        const { rows, next_cursor } = slicePage("break-glass", listed, query);
        return {
          status: 200,
          json: { break_glass: rows.map(renderUse), next_cursor },
          headers: nextLink("/v1/break-glass", query, next_cursor),
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/break-glass/:id/review",
      tag: TAG,
      summary: "Review a break-glass approval",
      description:
        "Closes the review. Available to approvers, except to the person who gave the emergency approval and to the person behind the agent, including with any of their keys.",
      scope: "approvals:decide",
      params: Params,
      body: Body,
      responses: { 200: { description: "The approval with its review.", schema: UseRecord } },
      errors: [ERRORS.notFound, ERRORS.reviewed, ERRORS.notEligible],
      handle: async ({ params, body, credential }) => ({
        status: 200,
        json: renderUse(await reviewBreakGlass(host, credential, params.id, body.comment)),
      }),
    }),
  ];
}

function renderUse(use: BreakGlassUse): Static<typeof UseRecord> {
  const { id, action_id, agent_id, tool, operation, by, reason, used_at, review } = use;
  return {
    id,
    status: review === null ? "open" : "reviewed",
    action_id,
    agent_id,
    tool,
    operation,
    approver: by.principal,
    reason,
    used_at: toRfc3339(used_at),
    review:
      review === null
        ? null
        : { reviewer: review.by.principal, comment: review.comment, reviewed_at: toRfc3339(review.at) },
  };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    break_glass: typeof routes;
  }
}
