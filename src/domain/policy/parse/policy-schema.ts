/** Schemas of policies and their tests, for validation and editors. */
import { type TSchema, Type } from "@sinclair/typebox";
import { ACTION_STATUSES } from "../../actions.ts";
import { MEMBER_PATTERN } from "../condition/condition-members.ts";
import type { JsonObject } from "../../json.ts";
import { REVIEWER_NAME_PATTERN } from "../../reviews.ts";
import { FACT_SOURCE_NAME_PATTERN, MAX_FACTS_OF_POLICY, MAX_GRANT_COUNT, MAX_HISTORY_ACTIONS } from "./bounds.ts";

/** `params.` and names without dots. */
/** A fact, or a member of its value. */
const PIN_PATTERN = "^facts[.][a-z][a-z0-9_]{0,63}([.][A-Za-z_][A-Za-z0-9_]{0,63}){0,8}$";
const PARAMETER_PATTERN = "^params([.][A-Za-z_][A-Za-z0-9_]{0,63}){1,8}$";

const EditableBounds = Type.Object(
  {
    min: Type.Optional(Type.Number({ description: "Smallest number." })),
    max: Type.Optional(Type.Number({ description: "Largest number." })),
    one_of: Type.Optional(
      Type.Array(Type.Union([Type.String({ maxLength: 1000 }), Type.Number(), Type.Boolean()]), {
        minItems: 1,
        maxItems: 100,
        description: "Allowed values.",
      }),
    ),
    max_length: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000,
        description: "Maximum number of characters of a string. Default: 1,000.",
      }),
    ),
  },
  { additionalProperties: false },
);

const Glob = (noun: string) =>
  Type.String({
    minLength: 1,
    maxLength: 256,
    description: `${noun}; \`*\` stands for any characters, \`?\` for one.`,
  });
const Globs = (noun: string) =>
  Type.Union([Glob(noun), Type.Array(Glob(noun), { minItems: 1, maxItems: 200 })], {
    description: `${noun}; one glob or a list.`,
  });
const Name = (description: string) => Type.String({ minLength: 1, maxLength: 100, description });
const Description = Type.Optional(Type.String({ maxLength: 2000, description: "For readers." }));
const Effect = Type.Union([Type.Literal("allow"), Type.Literal("deny"), Type.Literal("require_approval")], {
  description: "Decision if the rule matches.",
});
const Expires = "Time in which the request can be approved, such as 30m, 1h or 7d. Default: 24h.";
const Valid = "Time in which an approved action can start, such as 15m, 1h or 7d. Default: 1h.";
const Holds =
  "Time for which a rejection denies the same request of the same agent, such as 1h or 7d; none or 0s disables this. Default: the service's setting (24h).";
const Approvers = Type.Array(
  Type.Object(
    {
      group: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 100,
          description: "Group from the configuration or the sign-in. Default: people of any group or none.",
        }),
      ),
      count: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 20, description: "Number of different people. Default: 1." }),
      ),
    },
    { additionalProperties: false, description: "People of one group." },
  ),
  {
    minItems: 1,
    maxItems: 20,
    description:
      "The required approvers. Each vote satisfies only one item, even if the approver is in several groups.",
  },
);
const Stages = Type.Array(
  Type.Object(
    {
      after: Type.Optional(
        Type.String({
          maxLength: 40,
          description:
            "Opens this stage as an alternative if the previous stage is not satisfied within this time, such as 30m. Default: opens when the previous stage is satisfied.",
        }),
      ),
      approvers: Approvers,
      notify: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
          maxItems: 20,
          description: "Channels to notify when the stage opens.",
        }),
      ),
    },
    { additionalProperties: false, description: "A stage." },
  ),
  { minItems: 1, maxItems: 5, description: "Stages that must be satisfied in order, instead of approvers." },
);
const Grants = Type.Object(
  {
    for: Type.String({ maxLength: 40, description: "Maximum time from a grant to its end, such as 8h." }),
    count: Type.Integer({
      minimum: 1,
      maximum: MAX_GRANT_COUNT,
      description: "Maximum number of uses of a grant.",
    }),
  },
  {
    additionalProperties: false,
    description: "Allows approvers to grant later actions, up to these caps. Default: no grants.",
  },
);
const Terms = Type.Object(
  {
    mode: Type.Optional(
      Type.Union([Type.Literal("maker_checker"), Type.Literal("self_confirm")], {
        description:
          "maker_checker: someone other than the person behind the agent must approve. self_confirm: that person can also confirm with a passkey. Default: maker_checker.",
      }),
    ),
    signature: Type.Optional(
      Type.Literal("passkey", {
        description: "passkey: each vote must be signed with a passkey, in the session of a user.",
      }),
    ),
    approvers: Type.Optional(Approvers),
    stages: Type.Optional(Stages),
    exclude_requester_groups: Type.Optional(
      Type.Boolean({ description: "true: members of the requester's groups cannot approve. Default: false." }),
    ),
    quorum: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 20,
        description: "Number of different people who must approve. Default: 1.",
      }),
    ),
    expires_in: Type.Optional(Type.String({ maxLength: 40, description: Expires })),
    valid_for: Type.Optional(Type.String({ maxLength: 40, description: Valid })),
    rejection_holds: Type.Optional(Type.String({ maxLength: 40, description: Holds })),
    grants: Type.Optional(Grants),
    reviewers: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.String({ pattern: REVIEWER_NAME_PATTERN, description: "Name of a configured reviewer." }),
            may_approve: Type.Optional(
              Type.Boolean({
                description:
                  "true: the reviewer's approval replaces the approval of a person. Default: the reviewer can only deny or escalate.",
              }),
            ),
          },
          { additionalProperties: false, description: "A machine reviewer." },
        ),
        { minItems: 1, maxItems: 5, description: "Machine reviewers that see the request as approvers do." },
      ),
    ),
    editable: Type.Optional(
      Type.Union(
        [
          Type.Array(Type.String({ pattern: PARAMETER_PATTERN, maxLength: 200 }), { minItems: 1, maxItems: 16 }),
          Type.Record(Type.String({ pattern: PARAMETER_PATTERN, maxLength: 200 }), EditableBounds, {
            minProperties: 1,
            maxProperties: 16,
            additionalProperties: false,
          }),
        ],
        {
          description:
            "Parameters that an approver can change before another person approves, such as params.amount: a list, or a map with bounds. Default: none.",
        },
      ),
    ),
    notify: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { maxItems: 20, description: "Channels to notify." }),
    ),
    pins: Type.Optional(
      Type.Array(Type.String({ pattern: PIN_PATTERN, maxLength: 200 }), {
        minItems: 1,
        maxItems: 16,
        uniqueItems: true,
        description:
          "Facts that the approver sees, such as facts.invoice.total. They are read again at the start, and if one changed, the action returns to the approver.",
      }),
    ),
    preview: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 300,
        description:
          "Sentence that tells approvers what the action does, such as Refund {params.amount} to {params.customer}. Values are quoted and shortened. Default: tool, operation and the first parameter.",
      }),
    ),
    show: Type.Optional(
      Type.Array(Type.String({ pattern: MEMBER_PATTERN, maxLength: 200 }), {
        maxItems: 16,
        description: "Members that approvers see first, such as params.amount or context.ticket.",
      }),
    ),
  },
  { additionalProperties: false, description: "Terms of the approval; only with require_approval." },
);
const byParameter = <T extends TSchema>(value: T, description: string) =>
  Type.Record(Type.String({ pattern: PARAMETER_PATTERN, maxLength: 200 }), value, {
    minProperties: 1,
    maxProperties: 16,
    additionalProperties: false,
    description,
  });
const Obligations = Type.Object(
  {
    redact: Type.Optional(
      Type.Array(Type.String({ pattern: PARAMETER_PATTERN, maxLength: 200 }), {
        minItems: 1,
        maxItems: 16,
        description:
          "Parameters whose values people do not see, such as [params.card.number]: in all actions that tool, operation and agent match, whatever the decision is.",
      }),
    ),
    set: Type.Optional(
      byParameter(
        Type.Union([Type.String({ maxLength: 1000 }), Type.Number(), Type.Boolean()]),
        "Values that replace those of the request, by parameter, such as { params.currency: EUR }.",
      ),
    ),
    clamp: Type.Optional(
      byParameter(
        Type.Object(
          {
            min: Type.Optional(Type.Number({ description: "Smallest number." })),
            max: Type.Optional(Type.Number({ description: "Largest number." })),
          },
          { minProperties: 1, additionalProperties: false },
        ),
        "Bounds to which numbers of the request are moved, by parameter, such as { params.amount: { max: 500 } }.",
      ),
    ),
  },
  {
    minProperties: 1,
    additionalProperties: false,
    description:
      "Changes to parameters. set and clamp change values: the changed request is evaluated again, and only that request can run. redact hides values from people.",
  },
);
const Risk = Type.Union([Type.Literal("low"), Type.Literal("medium"), Type.Literal("high"), Type.Literal("critical")], {
  description: "Displayed to approvers. Does not affect the decision.",
});

const EffectKey = Type.String({
  minLength: 1,
  maxLength: 200,
  description: "Template with members of the request, such as refund/{params.payment}.",
});

export const RuleSchema = Type.Object(
  {
    name: Name("Name of the rule, unique within the policy. Recorded with every decision that the rule makes."),
    description: Description,
    tool: Type.Optional(Globs("Tool that the rule applies to. Default: every tool")),
    operation: Type.Optional(Globs("Operation that the rule applies to. Default: every operation")),
    agent: Type.Optional(Globs("Agent that the rule applies to. Default: every agent")),
    when: Type.Optional(
      Type.String({ description: "Condition in CEL over agent, tool, operation, params, context, principal and now." }),
    ),
    effect: Effect,
    risk: Type.Optional(Risk),
    reason: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1000,
        description: "Displayed to the agent and to approvers, and recorded.",
      }),
    ),
    approval: Type.Optional(Terms),
    obligations: Type.Optional(Obligations),
    effect_key: Type.Optional(
      Type.Union(
        [
          EffectKey,
          Type.Object(
            {
              key: EffectKey,
              within: Type.Optional(
                Type.String({ description: "Period after a success, such as 24h or 30d. Default: 24h." }),
              ),
            },
            { additionalProperties: false },
          ),
        ],
        {
          description:
            "The business effect of the rule's actions, such as refund/{params.payment}. While an action with the same effect is open or its outcome is unknown, and for a period after it succeeded, another is denied.",
        },
      ),
    ),
  },
  { additionalProperties: false, description: "A rule. The first rule that matches decides for its policy." },
);

/** `result.` and names, or `*` for every member or item. */
const RESULT_MEMBER_PATTERN = "^result([.]([A-Za-z_][A-Za-z0-9_-]{0,63}|[*])){1,8}$";
/** Path of a member that a history keeps. It consists of names that CEL can select. */
const KEPT_MEMBER_PATTERN = "^result([.](?!__proto__([.]|$))[A-Za-z_][A-Za-z0-9_]{0,63}){1,8}$";
export const LABEL_PATTERN = "^[a-z][a-z0-9_]{0,63}$";
const ResultPattern = Type.String({ minLength: 1, maxLength: 500, description: "RE2." });
const ResultType = Type.String({ pattern: "^[a-z0-9*.+/-]{1,100}$", description: "JSON type or media type." });

const LimitSchema = Type.Object(
  {
    name: Name(
      "Name of the limit, unique among the rules and limits of the policy. Recorded as the rule of the decisions that it makes.",
    ),
    description: Description,
    tool: Type.Optional(Globs("Tool whose actions count. Default: every tool")),
    operation: Type.Optional(Globs("Operation that counts. Default: every operation")),
    agent: Type.Optional(Globs("Agent whose actions count. Default: every agent")),
    when: Type.Optional(Type.String({ description: "Condition in CEL. Actions for which it is false do not count." })),
    per: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "Counts actions separately for each agent, key, or value of a CEL expression such as params.customer. Default: one count for all actions.",
      }),
    ),
    count: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 1_000_000_000, description: "Maximum number of actions." }),
    ),
    sum: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "Number to add up, in CEL, such as params.amount. From 0 to 1,000,000,000; rounded up to millionths.",
      }),
    ),
    at_most: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000_000, description: "Maximum sum." })),
    reserve: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 1_000_000_000,
        description:
          "With a sum of usage, such as usage.cost_usd: the amount that an action counts until its result reports the usage. It stays if no report comes.",
      }),
    ),
    window: Type.String({
      minLength: 1,
      maxLength: 40,
      description: "Sliding window, such as 1h, 24h or 7d, or the current calendar hour, day, week or month.",
    }),
    time_zone: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: "Time zone of a calendar window, such as Europe/Berlin. Default: UTC.",
      }),
    ),
    effect: Type.Optional(
      Type.Union([Type.Literal("deny"), Type.Literal("require_approval")], {
        description: "Decision on an action that exceeds the limit. Default: deny.",
      }),
    ),
    risk: Type.Optional(Risk),
    reason: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1000,
        description: "Displayed to the agent and to approvers, and recorded.",
      }),
    ),
    approval: Type.Optional(Terms),
  },
  { additionalProperties: false, description: "Maximum number of matching actions, or maximum sum, within a window." },
);

const ResultSchema = Type.Object(
  {
    name: Name("Name of the rule, unique within the policy. Recorded with each inspection that it decides."),
    description: Description,
    tool: Type.Optional(Globs("Tool whose outputs are inspected. Default: every tool")),
    operation: Type.Optional(Globs("Operation whose outputs are inspected. Default: every operation")),
    agent: Type.Optional(Globs("Agent whose outputs are inspected. Default: every agent")),
    match: Type.Optional(
      Type.Object(
        {
          pattern: Type.Optional(
            Type.Union([ResultPattern, Type.Array(ResultPattern, { minItems: 1, maxItems: 20 })], {
              description: "RE2 patterns, of which one must occur in a string, number or member name of the output.",
            }),
          ),
          larger_than: Type.Optional(
            Type.Integer({ minimum: 0, maximum: 1_000_000_000, description: "Size in bytes that is exceeded." }),
          ),
          type: Type.Optional(
            Type.Union([ResultType, Type.Array(ResultType, { minItems: 1, maxItems: 20 })], {
              description:
                "JSON type of the output (string, number, boolean, null, array, object) or a media type that it contains, such as image/*.",
            }),
          ),
          when: Type.Optional(
            Type.String({
              description: "Condition in CEL over result, agent, tool, operation, params, context and now.",
            }),
          ),
        },
        {
          minProperties: 1,
          additionalProperties: false,
          description: "Tests that must all be true. Default: every output matches.",
        },
      ),
    ),
    effect: Type.Union([Type.Literal("allow"), Type.Literal("redact"), Type.Literal("withhold")], {
      description:
        "allow passes the output on. redact replaces what pattern finds, and members. withhold passes nothing on.",
    }),
    members: Type.Optional(
      Type.Array(Type.String({ pattern: RESULT_MEMBER_PATTERN, maxLength: 200 }), {
        minItems: 1,
        maxItems: 16,
        description: "Members to replace, such as result.customer.ssn or result.rows.*.email. Only with redact.",
      }),
    ),
    replacement: Type.Optional(
      Type.String({ maxLength: 100, description: "Text in place of what was found. Default: [redacted]." }),
    ),
    labels: Type.Optional(
      Type.Array(Type.String({ pattern: LABEL_PATTERN }), {
        minItems: 1,
        maxItems: 10,
        description: "Labels that the session gets, which later decisions read as session.labels.",
      }),
    ),
    reason: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1000, description: "Displayed to the agent, and recorded." }),
    ),
  },
  {
    additionalProperties: false,
    description: "A rule for what a tool returned. All rules that match count, and the strictest effect wins.",
  },
);

const ToolSchema = Type.Object(
  {
    tool: Type.String({ minLength: 1, maxLength: 256, description: "Name of the tool, without globs." }),
    operation: Type.Optional(
      Type.String({ minLength: 1, maxLength: 256, description: "Name of the operation. Default: every operation." }),
    ),
    params: Type.Record(Type.String(), Type.Unknown(), { description: "JSON Schema of the parameters." }),
  },
  { additionalProperties: false, description: "Parameters of a tool. Conditions are checked against them." },
);

const HistorySchema = Type.Object(
  {
    per: Type.String({
      minLength: 1,
      description:
        "Owner of the past actions: agent, key, session, or a CEL expression such as params.account, for the actions with the same value.",
    }),
    tool: Type.Optional(Globs("Tool of the past actions. Default: every tool")),
    operation: Type.Optional(Globs("Operation of the past actions. Default: every operation")),
    include_denied: Type.Optional(
      Type.Boolean({
        description: "true: includes actions that were denied when they were submitted. Default: false.",
      }),
    ),
    window: Type.String({
      minLength: 1,
      maxLength: 40,
      description:
        "Window of the past actions, such as 1h, 24h or 7d, or the current calendar hour, day, week or month.",
    }),
    time_zone: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: "Time zone of a calendar window, such as Europe/Berlin. Default: UTC.",
      }),
    ),
    max: Type.Integer({
      minimum: 1,
      maximum: MAX_HISTORY_ACTIONS,
      description: "Maximum number of past actions. If there are more, conditions that read the history fail.",
    }),
    keep: Type.Optional(
      Type.Array(Type.String({ pattern: KEPT_MEMBER_PATTERN }), {
        minItems: 1,
        maxItems: 16,
        uniqueItems: true,
        description:
          "Members of results that conditions can read. With result.customer_id, a condition can read h.result.customer_id. The values are erased with the action. Default: none.",
      }),
    ),
  },
  { additionalProperties: false, description: "The past actions that conditions read as history." },
);

const FactName = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";

const FactsSchema = Type.Record(
  Type.String({ pattern: FactName }),
  Type.Object(
    {
      source: Type.String({ pattern: FACT_SOURCE_NAME_PATTERN, description: "Name of a configured fact source." }),
      with: Type.Optional(
        Type.Record(Type.String({ pattern: FactName }), Type.String({ minLength: 1, description: "CEL." }), {
          maxProperties: 16,
          additionalProperties: false,
          description:
            "Inputs of the source, as CEL over the variables of conditions, such as { id: params.account }. Default: none.",
        }),
      ),
      schema: Type.Record(Type.String(), Type.Unknown(), {
        description: "JSON Schema of the value. Conditions cannot read members that the schema does not name.",
      }),
    },
    { additionalProperties: false, description: "A value from a fact source." },
  ),
  {
    minProperties: 1,
    maxProperties: MAX_FACTS_OF_POLICY,
    additionalProperties: false,
    description: "Values that conditions read as facts.NAME, from fact sources.",
  },
);

const AttributesSchema = Type.Object(
  {
    claims: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: "JSON Schema of principal.claims." }),
    ),
    agent_metadata: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: "JSON Schema of agent_metadata." }),
    ),
  },
  {
    additionalProperties: false,
    description: "Types of attributes, for the check of conditions. They do not affect decisions.",
  },
);

const DataName = Type.String({
  pattern: "^[A-Za-z_][A-Za-z0-9_]{0,63}$",
  description: "Name: letters, digits and underscores, at most 64.",
});

/** Schema of a file with shared data. */
export const SharedDataSchema = Type.Object(
  {
    data: DataName,
    description: Description,
    values: Type.Record(Type.String(), Type.Unknown(), { description: "Values by name." }),
    environments: Type.Optional(
      Type.Record(Type.String({ minLength: 1, maxLength: 64 }), Type.Record(Type.String(), Type.Unknown()), {
        description:
          "Values that replace values of the same name, by environment (`environment` in the configuration).",
      }),
    ),
  },
  { additionalProperties: false, $id: "assent-policy-data", description: "Values that several policies share." },
);

export const PolicySchema = Type.Object(
  {
    policy: Type.String({
      pattern: "^[a-z0-9][a-z0-9._-]{0,63}$",
      description: "Name: lowercase letters, digits, dots, dashes and underscores, at most 64.",
    }),
    description: Description,
    mode: Type.Optional(
      Type.Union([Type.Literal("enforce"), Type.Literal("shadow")], {
        description: "shadow: evaluated and recorded, but never enforced. Default: enforce.",
      }),
    ),
    case_sensitive: Type.Optional(
      Type.Boolean({
        description: "true: tools, operations and agents are matched case-sensitively. Default: false.",
      }),
    ),
    applies_to: Type.Optional(
      Type.Object(
        {
          tools: Type.Optional(
            Type.Array(Glob("Tool"), {
              minItems: 1,
              maxItems: 200,
              description: "Tools that the policy applies to. Default: all.",
            }),
          ),
          agents: Type.Optional(
            Type.Array(Glob("Agent"), {
              minItems: 1,
              maxItems: 200,
              description: "Agents that the policy applies to. Default: all.",
            }),
          ),
        },
        {
          additionalProperties: false,
          description: "Actions that the policy applies to, by tool and agent; both must match.",
        },
      ),
    ),
    tools: Type.Optional(
      Type.Array(ToolSchema, {
        minItems: 1,
        maxItems: 1_000,
        description: "Parameters of tools, for the check of conditions. They do not affect decisions.",
      }),
    ),
    let: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        maxProperties: 100,
        description:
          "Values that conditions read by name: constants, lists and maps; or an expression, such as { cel: params.net * 1.19 }.",
      }),
    ),
    data: Type.Optional(
      Type.Union(
        [
          Type.Array(DataName, { minItems: 1, maxItems: 100, uniqueItems: true }),
          Type.Record(Type.String(), Type.Record(Type.String(), Type.Unknown()), { maxProperties: 100 }),
        ],
        {
          description:
            "Names of the shared data that conditions read, such as [limits] for data.limits.small. A JSON policy can contain the values instead.",
        },
      ),
    ),
    suggested: Type.Optional(
      Type.Object(
        {
          in_place_of: Type.Object(
            {
              policy: Type.String({ minLength: 1, maxLength: 64, description: "Name of its policy." }),
              rule: Type.String({ minLength: 1, maxLength: 100, description: "Name of the rule." }),
            },
            { additionalProperties: false, description: "The rule that requires approval." },
          ),
          max_failed: Type.Optional(
            Type.Number({
              minimum: 0,
              maximum: 1,
              description: "Reverts the rule if a larger share of its newest 50 results failed. Default: 0.1.",
            }),
          ),
        },
        {
          additionalProperties: false,
          description:
            "Present if the policy was suggested from approvals. Its only rule allows actions for which no other rule than in_place_of requires approval, until it is reverted.",
        },
      ),
    ),
    history: Type.Optional(HistorySchema),
    facts: Type.Optional(FactsSchema),
    attributes: Type.Optional(AttributesSchema),
    rules: Type.Array(RuleSchema, {
      maxItems: 20_000,
      description: "Rules in order: the first match decides. Can be empty only if the policy has limits or results.",
    }),
    limits: Type.Optional(
      Type.Array(LimitSchema, {
        minItems: 1,
        maxItems: 50,
        description: "Every limit is evaluated in addition to the rules; the strictest effect wins.",
      }),
    ),
    results: Type.Optional(
      Type.Array(ResultSchema, {
        minItems: 1,
        maxItems: 50,
        description: "Rules for what tools return, before the agent gets it.",
      }),
    ),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: "Any data. It does not affect decisions." }),
    ),
  },
  { additionalProperties: false, $id: "assent-policy", description: "A policy of Assent." },
);

const ACTION = {
  agent_id: Type.String({ minLength: 1, maxLength: 256, description: "Agent that acts." }),
  tool: Type.String({ minLength: 1, maxLength: 256, description: "Name of the tool." }),
  operation: Type.String({ minLength: 1, maxLength: 256, description: "Name of the operation." }),
  params: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: "Parameters of the action. Default: {}." }),
  ),
  context: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: "Context of the action. Default: {}." }),
  ),
};
const Action = Type.Object(ACTION, { additionalProperties: false, description: "The submitted action." });
export const GivenPrincipal = Type.Object(
  {
    key_id: Type.Optional(Type.String({ description: "Id of the key." })),
    name: Type.Optional(Type.String({ description: "Name of the key." })),
    agent_id: Type.Optional(
      Type.Union([Type.String(), Type.Null()], { description: "Agent that the key is bound to." }),
    ),
    owner: Type.Optional(
      Type.Union([Type.String(), Type.Null()], { description: "The user who owns the key, as `user:<id>`." }),
    ),
    claims: Type.Optional(
      Type.Unsafe<JsonObject>(
        Type.Record(Type.String(), Type.Unknown(), { description: "Verified claims of the agent's token." }),
      ),
    ),
    groups: Type.Optional(Type.Array(Type.String(), { description: "Groups of the key or the user. Default: none." })),
    roles: Type.Optional(Type.Array(Type.String(), { description: "Roles of the user. Default: none." })),
  },
  {
    additionalProperties: false,
    description: "The key or user that submits the action. Defaults: null or empty, and test for key_id.",
  },
);

export const GivenAgent = Type.Object(
  {
    groups: Type.Optional(Type.Array(Type.String(), { description: "agent_groups. Default: none." })),
    metadata: Type.Optional(
      Type.Unsafe<JsonObject>(
        Type.Record(Type.String(), Type.Unknown(), { description: "agent_metadata. Default: {}." }),
      ),
    ),
  },
  { additionalProperties: false, description: "Attributes of the agent." },
);

export const GivenFacts = Type.Record(Type.String({ pattern: FactName }), Type.Unknown(), {
  additionalProperties: false,
  description: "Values of facts, by name. For an absent fact, the source does not answer.",
});

const Used = Type.Record(Type.String(), Type.Number({ minimum: 0, maximum: 1_000_000_000 }), {
  description: "Usage of limits before the action, by name of the limit: number of actions, or the sum. Default: none.",
});

const SessionName = Type.String({
  minLength: 1,
  description:
    "Name of the action's session. Past actions with the same name are in the same session. Default: no session.",
});

const SessionLabels = Type.Array(Type.String({ pattern: LABEL_PATTERN }), {
  maxItems: 50,
  uniqueItems: true,
  description: "session.labels. Default: none.",
});

const GivenResult = Type.Record(Type.String(), Type.Unknown(), {
  description: "`meta` of the reported result, whose members a history can keep. Default: none.",
});

const GivenHistory = Type.Array(
  Type.Object(
    {
      ago: Type.String({ description: "Time from the past action to the action, such as 30m." }),
      agent_id: Type.Optional(
        Type.String({ minLength: 1, description: "Agent of the past action. Default: the agent of the action." }),
      ),
      key_id: Type.Optional(
        Type.String({ description: "Key that submitted the past action. Default: the key of the action." }),
      ),
      session: Type.Optional(
        Type.String({ description: "Session of the past action. Default: the session of the action." }),
      ),
      tool: Type.String({ minLength: 1, maxLength: 256, description: "Name of the tool." }),
      operation: Type.String({ minLength: 1, maxLength: 256, description: "Name of the operation." }),
      params: Type.Optional(
        Type.Record(Type.String(), Type.Unknown(), { description: "Parameters of the action. Default: {}." }),
      ),
      context: Type.Optional(
        Type.Record(Type.String(), Type.Unknown(), { description: "Context of the action. Default: {}." }),
      ),
      status: Type.Optional(
        Type.Union(
          ACTION_STATUSES.map((status) => Type.Literal(status)),
          { description: "Current status of the past action. Default: succeeded." },
        ),
      ),
      result: Type.Optional(GivenResult),
    },
    { additionalProperties: false, description: "An action that was submitted earlier." },
  ),
  { maxItems: 1_000, description: "Past actions that histories of policies contain, in any order. Default: none." },
);

/** Schema of a file with one action and the key that submits it. */
export const SampleActionSchema = Type.Object(
  {
    ...ACTION,
    principal: Type.Optional(GivenPrincipal),
    agent: Type.Optional(GivenAgent),
    used: Type.Optional(Used),
    session: Type.Optional(SessionName),
    labels: Type.Optional(SessionLabels),
    history: Type.Optional(GivenHistory),
    facts: Type.Optional(GivenFacts),
  },
  { additionalProperties: false, $id: "assent-sample-action", description: "An action to explain." },
);

const ExpectedApproval = Type.Object(
  {
    quorum: Type.Optional(Type.Integer({ minimum: 1, description: "Number of different people who must approve." })),
    approvers: Type.Optional(Approvers),
    stages: Type.Optional(Stages),
    exclude_requester_groups: Type.Optional(
      Type.Boolean({ description: "Whether members of the requester's groups cannot approve." }),
    ),
    signature: Type.Optional(
      Type.Union([Type.Literal("passkey"), Type.Literal("none")], {
        description: "passkey: each vote must be signed. none: votes need no signature.",
      }),
    ),
    mode: Type.Optional(
      Type.Union([Type.Literal("maker_checker"), Type.Literal("self_confirm")], { description: "Who can approve." }),
    ),
    expires_in: Type.Optional(
      Type.String({ description: "Time for which the action waits for approval, such as 4h." }),
    ),
    valid_for: Type.Optional(
      Type.String({ description: "Time in which the action can start after approval, such as 1h." }),
    ),
    rejection_holds: Type.Optional(
      Type.String({ description: "Time for which a rejection denies the same request, such as 24h, or none." }),
    ),
    grants: Type.Optional(
      Type.Union([Grants, Type.Literal("none")], { description: "The largest grants that can cover the action." }),
    ),
    reviewers: Type.Optional(
      Type.Array(Type.String(), { description: "Exactly the machine reviewers that see the request." }),
    ),
    notify: Type.Optional(Type.Array(Type.String(), { description: "Exactly the channels that are notified." })),
  },
  {
    additionalProperties: false,
    description: "Terms of the approval that all policies together require. Absent members are not compared.",
  },
);

const EXPECTED = {
  policy: Type.Optional(Type.String({ description: "Policy that decides." })),
  rule: Type.Optional(Type.String({ description: "Rule or limit that decides." })),
  reason_code: Type.Optional(
    Type.String({
      description: "Reason code, such as POLICY_RULE, NO_MATCHING_RULE, CONDITION_ERROR or LIMIT_EXCEEDED.",
    }),
  ),
  risk: Type.Optional(Risk),
  approval: Type.Optional(ExpectedApproval),
  params: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        "Parameters of the request that may run, after obligations are applied. Absent parameters are not compared.",
    }),
  ),
  shadow: Type.Optional(
    Type.Record(
      Type.String(),
      Type.Union([
        Effect,
        Type.Object(
          { effect: Effect, rule: Type.Optional(Type.String({ description: "Rule or limit of the policy." })) },
          { additionalProperties: false },
        ),
      ]),
      { description: "Answers of policies in shadow mode, by the name of the policy." },
    ),
  ),
};

const ActionName = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 100, description }));

const Step = Type.Object(
  {
    after: Type.Optional(Type.String({ description: "Time that passes before the step, such as 30m. Default: none." })),
    submit: Type.Optional(Action),
    id: ActionName("Name of the submitted action, for later steps."),
    times: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000,
        description: "Number of times that the action is submitted. Default: 1.",
      }),
    ),
    principal: Type.Optional(GivenPrincipal),
    agent: Type.Optional(GivenAgent),
    facts: Type.Optional(GivenFacts),
    session: Type.Optional(SessionName),
    labels: Type.Optional(SessionLabels),
    approve: ActionName("Action that `by` approves."),
    reject: ActionName("Action that `by` rejects."),
    by: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: "Owner who votes, such as ada." })),
    groups: Type.Optional(Type.Array(Type.String(), { description: "Groups of the voter. Default: none." })),
    shares_group: Type.Optional(
      Type.Boolean({ description: "true: the voter is in a group of the requester. Default: false." }),
    ),
    signed: Type.Optional(Type.Boolean({ description: "true: the voter signs with a passkey. Default: false." })),
    start: ActionName("Action that starts."),
    finish: ActionName("Action whose result is reported."),
    success: Type.Optional(Type.Boolean({ description: "The reported result. Default: true." })),
    result: Type.Optional(GivenResult),
    usage: Type.Optional(
      Type.Record(Type.String(), Type.Number({ minimum: 0, maximum: 1_000_000_000 }), {
        maxProperties: 16,
        description: "The reported usage, such as cost_usd, for limits that sum it. Default: none.",
      }),
    ),
    cancel: ActionName("Action that an operator cancels."),
    expect: Type.Optional(
      Type.Object(
        {
          effect: Type.Optional(Effect),
          ...EXPECTED,
          status: Type.Optional(
            Type.Union(
              ACTION_STATUSES.map((status) => Type.Literal(status)),
              { description: "Status of the action after the step." },
            ),
          ),
          refused: Type.Optional(
            Type.String({
              description: "Code with which the service refuses the step, such as APPROVER_NOT_ELIGIBLE.",
            }),
          ),
        },
        { additionalProperties: false, description: "The expected decision. Absent members are not compared." },
      ),
    ),
  },
  {
    additionalProperties: false,
    description: "One of submit, approve, reject, start, finish and cancel, or only after.",
  },
);

export const PolicyTestSchema = Type.Object(
  {
    now: Type.String({ format: "date-time", description: "The clock, RFC 3339." }),
    policies: Type.Optional(
      Type.Array(Type.String(), {
        description: "Names of the policies under test. Default: all policies of the folder.",
      }),
    ),
    environment: Type.Optional(
      Type.String({ description: "Environment whose shared data applies. Default: the configured environment." }),
    ),
    cases: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.String({ minLength: 1, maxLength: 200, description: "Name of the case." }),
            now: Type.Optional(
              Type.String({
                format: "date-time",
                description: "Time of this case, if it differs from the time of the test.",
              }),
            ),
            action: Action,
            principal: Type.Optional(GivenPrincipal),
            agent: Type.Optional(GivenAgent),
            used: Type.Optional(Used),
            session: Type.Optional(SessionName),
            labels: Type.Optional(SessionLabels),
            history: Type.Optional(GivenHistory),
            facts: Type.Optional(GivenFacts),
            expect: Type.Object(
              { effect: Effect, ...EXPECTED },
              { additionalProperties: false, description: "The expected decision. Absent members are not compared." },
            ),
          },
          { additionalProperties: false, description: "An action with the expected decision." },
        ),
        { minItems: 1, description: "Independent of each other: each starts without earlier actions." },
      ),
    ),
    scenarios: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.String({ minLength: 1, maxLength: 200, description: "Name of the scenario." }),
            now: Type.Optional(
              Type.String({
                format: "date-time",
                description: "Start time of this scenario, if it differs from the time of the test.",
              }),
            ),
            steps: Type.Array(Step, { minItems: 1, maxItems: 1_000, description: "The steps, in order." }),
          },
          {
            additionalProperties: false,
            description: "Several actions with votes, results and the time between them.",
          },
        ),
        { minItems: 1, description: "Independent of each other: each starts without earlier actions." },
      ),
    ),
  },
  { additionalProperties: false, $id: "assent-policy-test", description: "Tests of policies." },
);
