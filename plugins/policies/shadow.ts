/** Reports which decisions a policy in shadow mode would have changed, from its recorded results. */
import { Type } from "@sinclair/typebox";
import type { CoreHost } from "../../src/core.ts";
import { defineRoute } from "../../src/plugin.ts";
import { reportShadowPolicy } from "./backtest/backtest.ts";
import { BacktestRangeParams, FlipFields, parseBacktestRange, renderBacktest } from "./backtest/schemas.ts";
import { findPolicy } from "./stored-policies.ts";
import { PolicyParams } from "./schemas.ts";

/** Time limit of one request, in milliseconds. The response contains the position at which to continue. */
const BUDGET = 20_000;

const ShadowQuery = Type.Object(BacktestRangeParams, { additionalProperties: false });

const Shadow = Type.Object(
  {
    policy: Type.String(),
    ...FlipFields,
    evaluated: Type.Integer({ description: "Decisions for which the policy matched." }),
  },
  { additionalProperties: false },
);

export function shadowRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/policies/:id/shadow",
    tag,
    summary: "What a policy in shadow mode would have changed",
    scope: "policies:read",
    params: PolicyParams,
    query: ShadowQuery,
    description:
      "Lists the decisions of a range that would have differed if the policy had been enforced instead of being in shadow mode, grouped, with examples that the key may see.",
    responses: { 200: { description: "What would have flipped.", schema: Shadow } },
    errors: ["POLICY_NOT_FOUND", "INVALID_RANGE"],
    async handle({ params, query, credential, signal }) {
      const row = await findPolicy(host.storage, params.id);
      const span = parseBacktestRange(query, host.clock());
      const { compiled } = await host.policies.current();
      const inPlaceOf = compiled.policies.find(({ name }) => name === row.name)?.suggested ?? null;
      const report = await reportShadowPolicy(host.storage, row.name, inPlaceOf, {
        ...span,
        visibility: credential.visibility,
        budgetMs: BUDGET,
        signal,
      });
      return { status: 200, json: { policy: row.name, ...renderBacktest(span, report) } };
    },
  });
}
