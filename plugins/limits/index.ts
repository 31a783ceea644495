/** Lists the limits of the active policies, with their current use. */
import { type CoreHost, defineCorePlugin } from "../../src/core.ts";
import { defineRoute, Refusal, toRfc3339 } from "../../src/plugin.ts";
import { listLimits, listUses } from "./limits.ts";
import * as schema from "./schemas.ts";

const TAG = "policies";
const MILLION = 1_000_000;

export default defineCorePlugin({
  name: "limits",
  errors: schema.ERRORS,
  setup: (host) => ({ routes: limitRoutes(host) }),
});

function limitRoutes(host: CoreHost) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/limits",
      tag: TAG,
      summary: "List the limits of the active policies, with their current use",
      scope: "policies:read",
      responses: { 200: { description: "All limits.", schema: schema.LimitList } },
      async handle({ credential }) {
        const seesAll = "all" in credential.visibility && credential.hasScope("actions:read");
        return { status: 200, json: { limits: await listLimits(host, seesAll) } };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/limits/uses",
      tag: TAG,
      summary: "List the actions that used a limit",
      description: "For keys that can see all actions.",
      scope: "actions:read",
      query: schema.UseQuery,
      responses: { 200: { description: "The uses.", schema: schema.UseList } },
      errors: [schema.ERRORS.notFound],
      async handle({ query, credential }) {
        const { policy, limit, subject = "" } = query;
        const seesAll = "all" in credential.visibility;
        const uses = seesAll ? await listUses(host, { policy, limit, subject }) : null;
        if (uses === null)
          throw new Refusal(
            schema.ERRORS.notFound,
            `there is no limit "${limit}" of the policy "${policy}" whose uses this key may see`,
          );
        return {
          status: 200,
          json: {
            uses: uses.map(({ action_id, at, amount }) => ({
              action_id,
              at: toRfc3339(at),
              amount: amount === 0 ? null : amount / MILLION,
            })),
          },
        };
      },
    }),
  ];
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    limits: typeof limitRoutes;
  }
}
