/** Building blocks for the schemas of entries about actions. */
import { Type } from "@sinclair/typebox";
import { closed, countSchema, orNull, textSchema, timeSchema } from "../../src/core.ts";

export const digestSchema = (description: string) => Type.String({ pattern: "^[0-9a-f]{64}$", description });
export const oneOfSchema = <const Value extends string>(description: string, ...values: Value[]) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description },
  );

export const GrantSum = Type.Object(
  {
    of: textSchema("CEL expression with a number as its value, or usage such as `usage.cost_usd`."),
    at_most: Type.Number({ minimum: 0 }),
    reserve: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 1_000_000_000,
        description: "For usage: the amount that counts for an action until its result reports the usage.",
      }),
    ),
  },
  { description: "Maximum sum over all uses.", ...closed },
);

/** The members of a grant that is created with a vote. The vote's signature covers them. */
export const VOTED_GRANT = {
  count: countSchema("Maximum number of uses."),
  ends_on_failure: Type.Boolean({ description: "Whether a failed result of a use ends the grant." }),
  for_ms: countSchema("Milliseconds from the vote to the end of the grant."),
  scope: orNull(textSchema("CEL over the request; null covers every request.")),
  sum: orNull(GrantSum),
  task: Type.Optional(textSchema("Title of the task that starts together with the grant.")),
};

export const Facts = Type.Object(
  {
    principal: Type.Object(
      {
        key_id: Type.String(),
        name: Type.String(),
        agent_id: orNull(Type.String()),
        owner: orNull(Type.String()),
        claims: Type.Optional(
          Type.Record(Type.String(), Type.Unknown(), { description: "Verified claims of the agent's token." }),
        ),
      },
      closed,
    ),
    agent: Type.Optional(
      Type.Object({ suspended: Type.Boolean(), allowed_tools: orNull(Type.Array(Type.String())) }, closed),
    ),
    require_registered_agents: Type.Optional(Type.Boolean()),
    bars: Type.Optional(
      Type.Array(
        Type.Object(
          { code: Type.String(), id: Type.String(), policy: orNull(Type.String()), reason: Type.String() },
          closed,
        ),
      ),
    ),
    key_ended: Type.Optional(Type.Literal(true)),
    final_request: Type.Optional(
      Type.Literal(true, { description: "Present if obligations can no longer change the request, and some apply." }),
    ),
    policy_commit: Type.Optional(Type.String()),
    effects: Type.Optional(
      Type.Array(
        Type.Object(
          {
            policy: Type.String(),
            rule: Type.String(),
            blocked_by: orNull(
              Type.Object(
                { action_id: Type.String(), at: Type.String(), own: Type.Boolean(), status: Type.String() },
                closed,
              ),
            ),
          },
          closed,
        ),
      ),
    ),
    suggested: Type.Optional(Type.Array(Type.String())),
    labels: Type.Optional(
      Type.Array(Type.String(), { description: "Labels of the session, or without one, of the agent." }),
    ),
    limits: Type.Optional(
      Type.Array(
        Type.Object(
          { policy: Type.String(), limit: Type.String(), basis: Type.String(), used: Type.Integer() },
          closed,
        ),
      ),
    ),
    authority: Type.Optional(
      Type.Object(
        {
          id: Type.String(),
          fault: orNull(Type.Object({ code: Type.String(), reason: Type.String() }, closed)),
          links: Type.Array(
            Type.Object(
              {
                id: Type.String(),
                agent_id: textSchema("The agent that gave the authority."),
                key_id: Type.String(),
                owner: orNull(Type.String()),
                principal: Type.String(),
                session: orNull(Type.Object({ id: Type.String(), issued_by: Type.String() }, closed)),
                created_at: Type.String(),
                until: Type.String(),
                tools: Type.Array(Type.String()),
                operations: Type.Array(Type.String()),
                condition: orNull(Type.String()),
                count: orNull(Type.Integer()),
                sum: orNull(GrantSum),
              },
              closed,
            ),
            { description: "The authority and its ancestors, root first." },
          ),
        },
        { description: "The authority that the request names. Absent if it names none.", ...closed },
      ),
    ),
    rejection_holds_ms: Type.Optional(Type.Integer({ minimum: 0 })),
    rejection: Type.Optional(
      Type.Object(
        {
          action_id: Type.String(),
          approver: Type.String(),
          approver_name: Type.Optional(orNull(textSchema("Display name of the approver."))),
          comment: orNull(Type.String()),
          at: Type.String(),
          until: Type.String(),
        },
        closed,
      ),
    ),
    grant: Type.Optional(
      Type.Object(
        {
          id: Type.String(),
          by: textSchema("Principal of the grantor."),
          by_name: Type.Optional(orNull(textSchema("Display name of the grantor."))),
          granted_at: timeSchema("When it was granted."),
          until: timeSchema("When the grant ends."),
          count: countSchema("Maximum number of uses."),
          scope: orNull(textSchema("CEL over the request; null covers every request.")),
          sum: orNull(GrantSum),
          groups: Type.Array(Type.String(), { description: "Groups of the grantor that the rules name." }),
          independent: Type.Boolean({ description: "Whether the grantor is in none of the requester's groups." }),
          self: Type.Boolean({ description: "Whether the grantor is the person behind the agent." }),
        },
        { description: "The grant that covers the action.", ...closed },
      ),
    ),
    past: Type.Optional(
      digestSchema(
        "Commitment to attributes, past actions, the usage of limits and facts of sources that the decision read.",
      ),
    ),
  },
  { title: "Facts", description: "Inputs of the decision besides request, policies and clock.", ...closed },
);

const Mode = oneOfSchema("Who may confirm.", "maker_checker", "self_confirm");
export const ApproverPlans = Type.Array(
  Type.Object(
    {
      exclude_requester_groups: Type.Boolean(),
      mode: Mode,
      signature: Type.Optional(
        Type.Literal("passkey", { description: "Present if each vote must be signed with a passkey." }),
      ),
      stages: Type.Array(
        Type.Object(
          {
            after_ms: orNull(Type.Integer()),
            approvers: Type.Array(Type.Object({ count: Type.Integer(), group: orNull(Type.String()) }, closed)),
            notify: Type.Optional(
              Type.Array(Type.String(), { description: "Channels that are notified when the stage opens." }),
            ),
          },
          closed,
        ),
      ),
    },
    closed,
  ),
  { description: "Who must approve, for each rule. The approval satisfies all of them." },
);

export const EditableParameter = Type.Object(
  {
    max: Type.Optional(Type.Number()),
    max_length: Type.Optional(Type.Integer()),
    min: Type.Optional(Type.Number()),
    one_of: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Number(), Type.Boolean()]))),
    path: textSchema("Such as `params.amount`."),
  },
  closed,
);

const Effect = oneOfSchema("Decision of the policies.", "allow", "deny", "require_approval");
export const DecisionInEntry = Type.Object(
  {
    effect: Effect,
    reason: Type.String(),
    reason_code: Type.String(),
    risk_level: orNull(Type.String()),
    policy: orNull(Type.String()),
    policy_version: orNull(Type.Integer()),
    rule: orNull(Type.String()),
    approval: orNull(
      Type.Object(
        {
          approvers: ApproverPlans,
          editable: Type.Optional(
            Type.Array(EditableParameter, { description: "Parameters that an approver can change. Absent if none." }),
          ),
          grants: Type.Optional(
            Type.Object(
              { count: Type.Integer(), for_ms: Type.Integer() },
              { description: "The largest grants that can cover the action. Absent if none can.", ...closed },
            ),
          ),
          mode: Mode,
          quorum: Type.Integer(),
          expires_in_ms: Type.Integer(),
          valid_for_ms: Type.Optional(Type.Integer()),
          rejection_holds_ms: Type.Optional(Type.Integer()),
          reviewers: Type.Optional(
            Type.Array(Type.Object({ may_approve: Type.Boolean(), name: Type.String() }, closed), {
              description: "Machine reviewers to call. Absent if the rules name none.",
            }),
          ),
          notify: Type.Array(Type.String()),
          pins: Type.Optional(
            Type.Array(
              Type.Object(
                {
                  path: textSchema("Such as `facts.invoice.total`."),
                  policy: textSchema("The policy that declares the fact."),
                },
                closed,
              ),
              { description: "Facts that must not change between the approval and the start. Absent if none." },
            ),
          ),
        },
        closed,
      ),
    ),
    obligations: Type.Optional(
      Type.Array(
        Type.Object(
          {
            max: Type.Optional(Type.Number()),
            min: Type.Optional(Type.Number()),
            path: textSchema("Such as `params.amount`."),
            set: Type.Optional(Type.Union([Type.String(), Type.Number(), Type.Boolean()])),
          },
          closed,
        ),
        { description: "What the rules require of parameters. The request that may run satisfies it. Absent if none." },
      ),
    ),
    shadow: Type.Array(
      Type.Object(
        {
          policy: Type.String(),
          policy_version: Type.Integer(),
          rule: orNull(Type.String()),
          effect: Effect,
          reason_code: Type.String(),
        },
        closed,
      ),
    ),
  },
  { title: "Decision", description: "The decision, its rule and its reason.", ...closed },
);
