/** The route that suggests scopes for a grant with the vote on a pending action. */
import { Type } from "@sinclair/typebox";
import {
  closed,
  type CompiledPolicySet,
  type CoreHost,
  count,
  type EarlierRequest,
  Evaluation,
  findDeniedBy,
  orNull,
  effectiveRequest,
  suggestScopes,
  text,
} from "../../src/core.ts";
import { defineRoute, Refusal, type Route } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { assertNotErased, isOverdue, visibleAction } from "./visible-action.ts";
import { IdParams } from "./schemas.ts";
import { recordAlteredError } from "./verify-record.ts";

/** Earlier requests that each scope is tried on. */
const MAX_EARLIER = 200;

const Answer = Type.Object(
  {
    considered: count("Earlier requests of the agent with this tool and operation that the scopes were tried on."),
    suggestions: Type.Array(
      Type.Object(
        {
          scope: orNull(text("Condition in CEL; null covers every request of the agent, tool and operation.")),
          covered: count("Number of those requests that it would have covered."),
        },
        closed,
      ),
      { description: "The narrowest first, at most three. None would have covered a request that a person rejected." },
    ),
  },
  closed,
);

export function suggestionRoute(host: CoreHost, tag: string): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/actions/:id/grant-suggestions",
    tag,
    summary: "Suggest scopes for a grant",
    description: `Suggests what to grant together with the approval of a pending action, from its parameters and the last ${MAX_EARLIER} requests of its agent with the same tool and operation that this key may see.`,
    scope: "grants:write",
    params: IdParams,
    responses: { 200: { description: "The suggestions.", schema: Answer } },
    errors: ["ACTION_NOT_FOUND", "ACTION_NOT_PENDING", "ACTION_ERASED", "RECORD_ALTERED"],
    async handle({ params, credential }) {
      const row = await visibleAction(host.storage, params.id, credential);
      assertNotErased(row);
      if (row.status !== "pending_approval" || isOverdue(row, host.clock()))
        throw new Refusal("ACTION_NOT_PENDING", `the action is ${row.status}; only a pending action gets suggestions`);
      const request = effectiveRequest(row);
      if (request === null) throw recordAlteredError(row, ["request"]);
      const { agent_id, tool, operation } = row;
      const filter = { visibility: credential.visibility, agent_id, tool, operation, before_seq: row.decision_seq };
      await host.waitForReadSlot();
      const rows = await host.storage.actions({ ...filter, limit: MAX_EARLIER });
      const { compiled } = await host.policies.current();
      const earlier = rows.flatMap((each) => toEarlierRequest(compiled, each) ?? []);
      return { status: 200, json: { considered: earlier.length, suggestions: suggestScopes(request, earlier) } };
    },
  });
}

/** Returns null for a request that was erased or cannot be read. */
function toEarlierRequest(compiled: CompiledPolicySet, row: ActionRow): EarlierRequest | null {
  const request = effectiveRequest(row);
  if (request === null) return null;
  const principal = { key_id: row.submitted_by, name: "", agent_id: row.submitted_agent, owner: row.submitted_owner };
  const evaluation = new Evaluation(compiled, request, { principal }, row.created_at);
  return { evaluation, isRejected: findDeniedBy(row) === "person" };
}
