/** GET /v1/denials: what policies denied lately, counted from the ledger's decisions by agent and rule. */
import { definePlugin, defineRoute, decodeEntry, Refusal, Type, type DecisionEntry, type Static } from "assent/plugin";

const HOUR = 3_600_000;
const PAGE = 500;

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
        // A key sees the decisions that it may see anywhere else, and no others.
        async handle({ query: { hours = 24 }, credential: { visibility }, signal }) {
          const until = host.clock() + 1;
          const since = until - hours * HOUR;
          const found = new Map<string, Static<typeof Denial>>();
          const span = await host.storage.decisionSpan(since, until);
          let before = span === null ? null : span.last + 1;
          while (span !== null && before !== null) {
            if (signal.aborted) throw new Refusal("SHUTTING_DOWN", "the service stops; ask again when it is back");
            const stretch = { from_seq: span.first, before_seq: before, since, until, limit: PAGE };
            const rows = await host.storage.decisions({ visibility, ...stretch });
            for (const { bytes } of rows) {
              const { agent_id, decision } = decodeEntry<DecisionEntry>(bytes);
              if (decision.effect !== "deny") continue;
              const { policy, rule, reason_code } = decision;
              const key = JSON.stringify([agent_id, policy, rule, reason_code]);
              const known = found.get(key);
              found.set(key, { agent_id, policy, rule, reason_code, count: (known?.count ?? 0) + 1 });
            }
            before = rows.length < PAGE ? null : (rows.at(-1)?.seq ?? null);
          }
          return { status: 200, json: { hours, denials: [...found.values()].sort((a, b) => b.count - a.count) } };
        },
      }),
    ],
  }),
});
