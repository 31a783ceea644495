/** What a policy in shadow mode would have changed, by what it said when the decisions were made. */
import { Type } from "@sinclair/typebox";
import type { Credential, Host } from "../../src/contract/host.ts";
import type { Reply, RequestContext } from "../../src/contract/resource.ts";
import { shadowReport } from "../../src/toolkit/backtest.ts";
import { backtestJson, FlipFields, SpanFields, spanOf, type AskedSpan } from "../../src/toolkit/backtest-schemas.ts";
import { findPolicy } from "./library.ts";

/** Longest look of one request, in milliseconds; the answer says where to go on. */
const BUDGET = 20_000;

export const ShadowQuery = Type.Object(SpanFields, { additionalProperties: false });

export const Shadow = Type.Object(
  {
    policy: Type.String(),
    ...FlipFields,
    evaluated: Type.Integer({ description: "Decisions that the policy had a say in." }),
  },
  { additionalProperties: false },
);

export async function shadow(host: Host, { params, query, credential, signal }: RequestContext): Promise<Reply> {
  const row = await findPolicy(host.storage, params["id"] as string);
  const span = spanOf(query as AskedSpan, host.clock());
  const report = await shadowReport(host.storage, row.name, { ...span, visibility: (credential as Credential).visibility, budgetMs: BUDGET, signal: AbortSignal.any([signal, host.stopping]) });
  return { status: 200, json: { policy: row.name, ...backtestJson(span, report) } };
}
