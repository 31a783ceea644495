/** Routes that list emergency approvals and close their reviews. */
import { closed, type CoreHost, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { defineRoute, nextLink, PAGE_QUERY, slicePage, type Static, toRfc3339, Type } from "../../src/plugin.ts";
import { canSeeUse, reviewBreakGlass } from "./break-glass-review.ts";
import { breakGlassState, type BreakGlassUse } from "./break-glass-uses.ts";

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

export function breakGlassRoutes(host: CoreHost, tag: string) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/break-glass",
      tag,
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
      tag,
      summary: "Review a break-glass approval",
      description:
        "Closes the review. Available to approvers, except to the person who gave the emergency approval and to the person behind the agent, including with any of their keys.",
      scope: "approvals:decide",
      params: Params,
      body: Body,
      responses: { 200: { description: "The approval with its review.", schema: UseRecord } },
      errors: ["BREAK_GLASS_NOT_FOUND", "BREAK_GLASS_REVIEWED", "REVIEWER_NOT_ELIGIBLE"],
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
