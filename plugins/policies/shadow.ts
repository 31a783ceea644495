/** What a policy in shadow mode would have changed, by what it said when the decisions were made. */
import { Type } from "@sinclair/typebox";
import { defineRoute, type Host, type Route } from "../../src/plugin.ts";
import { renderBacktest, FlipFields, SpanFields, parseSpan } from "../../src/core.ts";
import { findPolicy } from "./library.ts";
import { PolicyParams } from "./schemas.ts";

/** Longest look of one request, in milliseconds; the answer says where to go on. */
const BUDGET = 20_000;

const ShadowQuery = Type.Object(SpanFields, { additionalProperties: false });

const Shadow = Type.Object(
  {
    policy: Type.String(),
    ...FlipFields,
    evaluated: Type.Integer({ description: "Decisions that the policy had a say in." }),
  },
  { additionalProperties: false },
);

export function shadowRoute(host: Host, tag: string): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/policies/:id/shadow",
    tag,
    summary: "What a policy in shadow mode would have changed",
    scope: "policies:read",
    params: PolicyParams,
    query: ShadowQuery,
    description:
      "Of the decisions of a range that the policy had a say in while it was in shadow mode: those that would have come out otherwise had it been enforced, grouped, with examples that the key may see.",
    responses: { 200: { description: "What would have flipped.", schema: Shadow } },
    errors: ["POLICY_NOT_FOUND", "INVALID_RANGE"],
    async handle({ params, query, credential, signal }) {
      const row = await findPolicy(host.storage, params.id);
      const span = parseSpan(query, host.clock());
      const report = await host.policies.shadowReport(row.name, {
        ...span,
        visibility: credential.visibility,
        budgetMs: BUDGET,
        signal: AbortSignal.any([signal, host.stopping]),
      });
      return { status: 200, json: { policy: row.name, ...renderBacktest(span, report) } };
    },
  });
}
