/** GET /v1/denials and a page of the console: counts recent denials by agent and rule, from the decisions in the ledger. */
import { fileURLToPath } from "node:url";
import { definePlugin, defineRoute, Type, type Static } from "assent/plugin";

const HOUR = 3_600_000;

const Query = Type.Object(
  {
    hours: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 168, description: "How far to look back; 24 when absent." }),
    ),
  },
  { additionalProperties: false },
);

const Name = Type.Union([Type.String(), Type.Null()]);
const Denial = Type.Object(
  {
    agent_id: Type.String(),
    policy: Name,
    rule: Name,
    reason_code: Type.String(),
    count: Type.Integer({ minimum: 1 }),
  },
  { additionalProperties: false },
);
const Answer = Type.Object(
  { hours: Type.Integer(), denials: Type.Array(Denial, { description: "The most frequent first." }) },
  { additionalProperties: false },
);

export default definePlugin({
  name: "resource-denials",
  page: fileURLToPath(new URL("page.js", import.meta.url)),
  setup: (host) => ({
    routes: [
      defineRoute({
        method: "GET",
        path: "/v1/denials",
        tag: "denials",
        summary: "What policies denied lately",
        scope: "analytics:read",
        query: Query,
        responses: { 200: { description: "Denials by agent and rule.", schema: Answer } },
        // A key sees only the decisions that it can see elsewhere in the API.
        async handle({ query: { hours = 24 }, credential, signal }) {
          const until = host.clock() + 1;
          const found = new Map<string, Static<typeof Denial>>();
          for await (const entry of host
            .actions(credential)
            .decisions({ since: until - hours * HOUR, until, signal })) {
            const { effect, policy, rule, reason_code } = entry.decision;
            if (effect !== "deny") continue;
            const denial = { agent_id: entry.agent_id, policy, rule, reason_code };
            const key = JSON.stringify(Object.values(denial));
            found.set(key, { ...denial, count: (found.get(key)?.count ?? 0) + 1 });
          }
          return { status: 200, json: { hours, denials: [...found.values()].sort((a, b) => b.count - a.count) } };
        },
      }),
    ],
  }),
});
