/** The route that suggests scopes for a grant with the vote on a pending action. */
import { Type } from "@sinclair/typebox";
import { closed, type CoreHost, countSchema, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { defineRoute, Refusal } from "../../src/plugin.ts";
import {
  ActionRecord,
  assertNotErased,
  IdParams,
  isOverdue,
  recordAlteredError,
  visibleAction,
} from "../actions/api.ts";
import { suggestGrants } from "./suggest-grants.ts";
import { MAX_SCOPE } from "./suggest-scopes.ts";

/** Maximum number of earlier requests against which each suggested scope is tried. */
const MAX_EARLIER = 200;

const Covered = Type.Object(
  {
    id: textSchema("Action."),
    status: ActionRecord.properties.status,
    created_at: timeSchema("When it was submitted."),
    summary: textSchema("Its preview, or else its parameters, in one line. Hidden characters are marked."),
  },
  closed,
);

const Answer = Type.Object(
  {
    considered: countSchema(
      "Earlier requests of the agent with this tool and operation with which the scopes were tested.",
    ),
    suggestions: Type.Array(
      Type.Object(
        {
          scope: textSchema("Condition in CEL. It fixes all members of the request except those in `varying`."),
          varying: Type.Array(
            Type.Object(
              {
                member: textSchema("Member that may differ from this request, such as `params.amount`."),
                values: textSchema("The values that it may have, such as `from 5 to 20`."),
              },
              closed,
            ),
            {
              description:
                "Empty: the scope covers only requests with the same parameters and context. A request with a member that this one does not have is never covered.",
            },
          ),
          covered: countSchema("Number of the compared requests that it would have covered."),
          requests: Type.Array(Covered, { description: "The newest of them, at most five." }),
        },
        closed,
      ),
      {
        description:
          "The narrowest first, at most two. None would have covered a request that a person rejected. Empty if the request cannot be expressed as a scope: it is too long, or a policy redacts a parameter.",
      },
    ),
    written: orNull(
      Type.Object(
        {
          covers_request: Type.Boolean({ description: "Whether the scope covers the request itself." }),
          free: Type.Array(Type.String(), { description: "What the scope leaves free, as in a grant." }),
          covered: countSchema("Number of the compared requests that it would have covered."),
          requests: Type.Array(Covered, { description: "The newest of them, at most five." }),
        },
        { ...closed, description: "What the scope in the query would cover; null without one." },
      ),
    ),
  },
  closed,
);

const ScopeQuery = Type.Object(
  {
    scope: Type.Optional(
      Type.String({ minLength: 1, maxLength: MAX_SCOPE, description: "A scope to try, as a condition in CEL." }),
    ),
  },
  closed,
);

export function suggestionRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/actions/:id/grant-suggestions",
    tag,
    summary: "Suggest scopes for a grant",
    description: `Suggests what to grant together with the approval of a pending action, from its parameters and the last ${MAX_EARLIER} requests of its agent with the same tool and operation that this key may see.`,
    scope: "grants:write",
    params: IdParams,
    query: ScopeQuery,
    responses: { 200: { description: "The suggestions.", schema: Answer } },
    errors: ["ACTION_NOT_FOUND", "ACTION_NOT_PENDING", "ACTION_ERASED", "RECORD_ALTERED"],
    async handle({ params, query, credential }) {
      const row = await visibleAction(host.storage, params.id, credential);
      assertNotErased(row);
      if (row.status !== "pending_approval" || isOverdue(row, host.clock()))
        throw new Refusal("ACTION_NOT_PENDING", `the action is ${row.status}; only a pending action gets suggestions`);
      await host.waitForReadSlot();
      const { compiled } = await host.policies.current();
      const { visibility } = credential;
      const answer = await suggestGrants(compiled, row, query.scope ?? null, (filter) =>
        host.storage.actions({ ...filter, visibility, limit: MAX_EARLIER }),
      );
      if (answer === null) throw recordAlteredError(row, ["request"]);
      return { status: 200, json: answer };
    },
  });
}
