/** Schemas of grants. */
import { Type, type Static } from "@sinclair/typebox";
import { closed, countSchema, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { PAGE_QUERY } from "../../src/plugin.ts";
import { MAX_SCOPE } from "./suggest-scopes.ts";
import { GrantSum } from "../actions/api.ts";

/** Expressions are stored in each use's entry, so they are short and have no control characters. */
const Expression = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, pattern: "^[^\\u0000-\\u001f\\u007f]+$", description });
const Name = (description: string) => Type.String({ minLength: 1, maxLength: 256, format: "name", description });
const Comment = Type.Optional(Type.String({ maxLength: 500, description: "Recorded in the ledger." }));

/** What an agent does in a task, in words for people. */
export const TaskTitle = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 100,
    // One visible character, and none that controls or reorders text.
    pattern: "^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]+$",
    description: `${description} Stays in the ledger forever.`,
  });

/** The terms of a grant, whether it is created with a vote or without a vote. */
const TERMS = {
  for: Type.String({ maxLength: 40, description: "Time from now to the end of the grant, such as 30m or 8h." }),
  count: Type.Integer({ minimum: 1, maximum: 10_000, description: "Maximum number of actions that the grant covers." }),
  scope: Type.Optional(
    Expression(
      MAX_SCOPE,
      'Condition in CEL over what policies can read, such as `params.repo == "web"`. Absent: covers every request. Stays in the ledger forever.',
    ),
  ),
  sum: Type.Optional(
    Type.Object(
      {
        of: Expression(
          200,
          "CEL expression with a number as its value, such as `params.amount`, or usage that results report, such as `usage.cost_usd`.",
        ),
        at_most: Type.Number({ minimum: 0, maximum: 1_000_000_000, description: "Maximum sum over all uses." }),
        reserve: GrantSum.properties.reserve,
      },
      { ...closed, description: "Default: no cap on a sum." },
    ),
  ),
  ends_on_failure: Type.Optional(
    Type.Boolean({ description: "true: a failed result of a use ends the grant. Default: false." }),
  ),
};

export const GrantTermsBody = Type.Object(
  {
    ...TERMS,
    task: Type.Optional(TaskTitle("Starts a task with the grant: what the agent is to do.")),
  },
  {
    ...closed,
    description:
      "Grants later actions of the same agent, tool and operation together with the approval. The scope must cover this action.",
  },
);
export type GrantTermsBody = Static<typeof GrantTermsBody>;

const TARGET = { tool: Name("Tool that it may use."), operation: Name("Operation of the tool.") };

export const GrantBody = Type.Object(
  {
    agent_id: Name("Agent that may act."),
    ...TARGET,
    ...TERMS,
    reason: Comment,
  },
  {
    ...closed,
    examples: [
      { agent_id: "release-bot", tool: "ci", operation: "deploy", for: "8h", count: 20, scope: 'params.repo == "web"' },
    ],
  },
);
export type GrantBody = Static<typeof GrantBody>;

/** What a grant covers, for a feature that decides the agent and the time. */
export const GrantScopeTerms = Type.Omit(Type.Object({ ...TARGET, ...TERMS }), ["for"], closed);
export type GrantScopeTerms = Static<typeof GrantScopeTerms>;

export const RevokeBody = Type.Object({ reason: Comment }, closed);

export const FlagBody = Type.Object(
  {
    action_id: Type.String({ format: "uuid", description: "Action that the grant covered." }),
    reason: Type.String({ minLength: 1, maxLength: 500, description: "Recorded in the ledger." }),
  },
  closed,
);

export const GrantParams = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 64, description: "Grant." }) },
  closed,
);

export const GrantQuery = Type.Object(
  {
    active: Type.Optional(
      Type.Boolean({ description: "true lists only grants that have not ended; false, only ended grants." }),
    ),
    agent_id: Type.Optional(Type.String({ maxLength: 256 })),
    limit: PAGE_QUERY.limit,
    cursor: PAGE_QUERY.cursor,
  },
  closed,
);

export const GrantRecord = Type.Object(
  {
    id: Type.String(),
    status: Type.Union(
      (["active", "used_up", "blocked", "ended"] as const).map((status) => Type.Literal(status)),
      { description: "used_up: no uses are left. blocked: the grantor may no longer vote or grant." },
    ),
    agent_id: Type.String(),
    tool: Type.String(),
    operation: Type.String(),
    scope: orNull(textSchema("CEL; null covers every request.")),
    free: Type.Array(Type.String(), {
      description:
        "What the scope leaves free: members, such as `params.amount`, and `params.*` or `context.*` if requests may have members that are not in this list. Empty: the grant covers only equal requests. A member counts as fixed only if the scope compares it with a constant by `==`. The names come from the scope, and from the action of the grant or the newest action of the same agent, tool and operation.",
    }),
    count: countSchema("Maximum number of uses."),
    sum: orNull(GrantSum),
    used: orNull(
      Type.Object(
        {
          count: countSchema("Uses so far."),
          sum: orNull(Type.Number({ description: "Sum so far; null without `sum`." })),
        },
        { ...closed, description: "Null from one day after `until` on. `GET /v1/actions?grant_id=…` lists the uses." },
      ),
    ),
    until: timeSchema("When the grant expires."),
    ends_on_failure: Type.Boolean(),
    signed: Type.Boolean({
      description:
        "Whether the grantor signed it with a passkey, together with a vote. While the grantor has this passkey, the grant can cover the grantor's own agent if the rules have `mode: self_confirm`.",
    }),
    granted_by: textSchema("Principal of the grantor."),
    granted_at: timeSchema("When it was granted."),
    granted_with: orNull(textSchema("The action that was approved together with the grant.")),
    comment: orNull(textSchema("Comment of the grantor.")),
    ended: orNull(
      Type.Object(
        {
          cause: Type.Union(
            (["revoked", "rejection", "flag", "failure", "suspension", "stop", "time"] as const).map((cause) =>
              Type.Literal(cause),
            ),
            {
              description:
                "rejection: someone rejected an action of the same agent, tool and operation. suspension: someone suspended the agent.",
            },
          ),
          at: timeSchema("When the grant ended."),
          by: orNull(textSchema("Principal; null if the grant expired.")),
          action_id: orNull(
            textSchema("The action that was rejected or flagged, that failed, or whose approval was withdrawn."),
          ),
          comment: orNull(textSchema("Comment of the person who ended it.")),
        },
        closed,
      ),
    ),
  },
  { title: "Grant", ...closed },
);
export type GrantRecord = Static<typeof GrantRecord>;

export const GrantList = Type.Object({ grants: Type.Array(GrantRecord), next_cursor: orNull(Type.String()) }, closed);
