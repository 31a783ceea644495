/** Route that lists plans, with the status of each action. */
import { type CoreHost, decodeSeqCursor } from "../../src/core.ts";
import { cutPage, defineRoute, nextLink, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import * as schema from "./plan-schemas.ts";
import { readPlanEntry, readRowsOfVisiblePlan } from "./plan-state.ts";
import { withCurrentStatus } from "./visible-action.ts";

const LIST = "plans";

export function planListRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/plans",
    tag,
    summary: "List plans, newest first",
    description: "Plans whose actions this key may all see. A page can have fewer plans than `limit`.",
    scope: ["actions:read", "actions:read_own"],
    query: schema.PlanQuery,
    responses: { 200: { description: "A page.", schema: schema.PlanList } },
    errors: ["INVALID_CURSOR", "RECORD_ALTERED"],
    async handle({ query, credential }) {
      const { agent_id, cursor, limit = schema.MAX_LISTED_PLANS } = query;
      const firsts = await host.storage.actions({
        visibility: credential.visibility,
        first_of_plan: true,
        ...(agent_id === undefined ? {} : { agent_id }),
        ...(cursor === undefined ? {} : { before_seq: decodeSeqCursor(LIST, cursor) }),
        limit: limit + 1,
      });
      const page = cutPage(LIST, firsts, limit, ({ decision_seq }) => decision_seq);
      const plans: schema.PlanSummary[] = [];
      for (const { plan_id } of page.rows) {
        await host.waitForReadSlot(credential.key.id);
        const rows = await readRowsOfVisiblePlan(host.storage, plan_id ?? "", credential).catch(nullIfInvisible);
        if (rows !== null) plans.push(await renderSummary(host, rows));
      }
      return {
        status: 200,
        json: { plans, next_cursor: page.next_cursor },
        headers: nextLink("/v1/plans", query, page.next_cursor),
      };
    },
  });
}

/** Returns null for PLAN_NOT_FOUND: a reader who sees the first action of a plan might not see all others. */
function nullIfInvisible(error: unknown): null {
  if (error instanceof Refusal && error.code === "PLAN_NOT_FOUND") return null;
  throw error;
}

async function renderSummary(host: CoreHost, rows: readonly ActionRow[]): Promise<schema.PlanSummary> {
  const { plan, agent_id, by, at } = await readPlanEntry(host.storage, rows[0] as ActionRow);
  const now = host.clock();
  return {
    id: plan.id,
    agent_id,
    ordered: plan.ordered,
    stop_on_failure: plan.stop_on_failure,
    submitted_by: by.key_id,
    created_at: at,
    actions: rows.map((row) => {
      const { id, tool, operation, status } = withCurrentStatus(row, now);
      return { id, tool, operation, status };
    }),
  };
}
