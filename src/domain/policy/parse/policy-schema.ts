/** Schemas of policies and their tests, for validation and editors. */
import { Type } from "@sinclair/typebox";
import { ACTION_STATUSES } from "../../actions.ts";
import { MEMBER_PATTERN } from "../condition/condition-members.ts";
import type { JsonObject } from "../../json.ts";
import { REVIEWER_NAME } from "../../reviews.ts";
import { FACT_SOURCE_NAME, MAX_FACTS_OF_POLICY, MAX_GRANT_COUNT, MAX_HISTORY } from "./bounds.ts";

/** Pattern of a path that approvers can edit: `params.` and member names without dots. */
const EDITABLE_PATTERN = "^params([.][A-Za-z_][A-Za-z0-9_]{0,63}){1,8}$";

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
      Type.Integer({ minimum: 1, maximum: 10_000, description: "Maximum characters of a text; 1,000 when absent." }),
    ),
  },
  { additionalProperties: false },
);

const Glob = (what: string) =>
  Type.String({
    minLength: 1,
    maxLength: 256,
    description: `${what}; \`*\` stands for any characters, \`?\` for one.`,
  });
const Globs = (what: string) =>
  Type.Union([Glob(what), Type.Array(Glob(what), { minItems: 1, maxItems: 200 })], {
    description: `${what}; one glob or a list.`,
  });
const Name = (description: string) => Type.String({ minLength: 1, maxLength: 100, description });
const Description = Type.Optional(Type.String({ maxLength: 2000, description: "For readers." }));
const Effect = Type.Union([Type.Literal("allow"), Type.Literal("deny"), Type.Literal("require_approval")], {
  description: "Decision if the rule matches.",
});
const Expires = "How long the request for approval is open, such as 30m, 1h or 7d; 24h when absent.";
const Valid = "How long an approved action can be started, such as 15m, 1h or 7d; 1h when absent.";
const Holds =
  "How long a rejection blocks the same request of the same agent, such as 1h or 7d; none or 0s: not at all. The service's default (24h) when absent.";
const Approvers = Type.Array(
  Type.Object(
    {
      group: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 100,
          description: "Group, from the configuration or the sign-in; people of any group or none when absent.",
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
    description: "Who must approve. Each vote satisfies one item, also if the approver is in several groups.",
  },
);
const Stages = Type.Array(
  Type.Object(
    {
      after: Type.Optional(
        Type.String({
          maxLength: 40,
          description:
            "Opens this stage as an alternative if the one before is not met in this time, such as 30m. Absent: opens once the stage before is met.",
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
  { minItems: 1, maxItems: 5, description: "Stages that are met in order, instead of approvers." },
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
    description: "Allows approvers to grant later actions, up to these caps. No grants when absent.",
  },
);
const Terms = Type.Object(
  {
    mode: Type.Optional(
      Type.Union([Type.Literal("maker_checker"), Type.Literal("self_confirm")], {
        description:
          "maker_checker: someone other than the person behind the agent approves. self_confirm: that person can confirm with a passkey, too. maker_checker when absent.",
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
      Type.Boolean({ description: "true: members of the requester's groups cannot approve. false when absent." }),
    ),
    quorum: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 20,
        description: "Number of different people who must approve; 1 when absent.",
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
            name: Type.String({ pattern: REVIEWER_NAME, description: "Name of a configured reviewer." }),
            may_approve: Type.Optional(
              Type.Boolean({
                description:
                  "true: its approval replaces the approval of a person. When absent, it can only deny or escalate.",
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
          Type.Array(Type.String({ pattern: EDITABLE_PATTERN, maxLength: 200 }), { minItems: 1, maxItems: 16 }),
          Type.Record(Type.String({ pattern: EDITABLE_PATTERN, maxLength: 200 }), EditableBounds, {
            minProperties: 1,
            maxProperties: 16,
            additionalProperties: false,
          }),
        ],
        {
          description:
            "Parameters that an approver can change before another person approves, such as params.amount: a list, or a map with bounds. None when absent.",
        },
      ),
    ),
    notify: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { maxItems: 20, description: "Channels to notify." }),
    ),
    preview: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 300,
        description:
          "Sentence that tells approvers what happens, such as Refund {params.amount} to {params.customer}. Values are quoted and shortened. Tool, operation and the first parameter when absent.",
      }),
    ),
    show: Type.Optional(
      Type.Array(Type.String({ pattern: MEMBER_PATTERN, maxLength: 200 }), {
        maxItems: 16,
        description: "What approvers see first, such as params.amount or context.ticket.",
      }),
    ),
  },
  { additionalProperties: false, description: "Terms of the approval; only with require_approval." },
);
const Risk = Type.Union([Type.Literal("low"), Type.Literal("medium"), Type.Literal("high"), Type.Literal("critical")], {
  description: "Shown to approvers. Does not affect the decision.",
});

export const RuleSchema = Type.Object(
  {
    name: Name("Unique inside the policy; recorded with every decision the rule makes."),
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
      Type.String({ minLength: 1, maxLength: 1000, description: "Shown to the agent and to approvers, and recorded." }),
    ),
    approval: Type.Optional(Terms),
  },
  { additionalProperties: false, description: "A rule. The first one that matches decides for its policy." },
);

const LimitSchema = Type.Object(
  {
    name: Name("Unique among the rules and limits of the policy; recorded as the rule of decisions that it makes."),
    description: Description,
    tool: Type.Optional(Globs("Tool whose actions count; absent: every tool")),
    operation: Type.Optional(Globs("Operation that counts; absent: every operation")),
    agent: Type.Optional(Globs("Agent whose actions count; absent: every agent")),
    when: Type.Optional(Type.String({ description: "Condition in CEL. Actions for which it is false do not count." })),
    per: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "What is counted separately: agent, key, or a CEL expression such as params.customer. Absent: all together.",
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
    window: Type.String({
      minLength: 1,
      maxLength: 40,
      description: "Sliding window, such as 1h, 24h or 7d, or the current calendar hour, day, week or month.",
    }),
    time_zone: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: "Time zone of a calendar window, such as Europe/Berlin; UTC when absent.",
      }),
    ),
    effect: Type.Optional(
      Type.Union([Type.Literal("deny"), Type.Literal("require_approval")], {
        description: "Decision on an action that exceeds the limit; deny when absent.",
      }),
    ),
    risk: Type.Optional(Risk),
    reason: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1000, description: "Shown to the agent and to approvers, and recorded." }),
    ),
    approval: Type.Optional(Terms),
  },
  { additionalProperties: false, description: "Maximum number of matching actions, or maximum sum, within a window." },
);

const ToolSchema = Type.Object(
  {
    tool: Type.String({ minLength: 1, maxLength: 256, description: "Name of the tool, without globs." }),
    operation: Type.Optional(
      Type.String({ minLength: 1, maxLength: 256, description: "Name of the operation; absent: every operation." }),
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
        "Whose past actions: agent, key or session; or CEL, such as params.account, for the actions with the same value.",
    }),
    tool: Type.Optional(Globs("Tool of the past actions; absent: every tool")),
    operation: Type.Optional(Globs("Operation of the past actions; absent: every operation")),
    include_denied: Type.Optional(
      Type.Boolean({
        description: "true: includes actions that were denied when they were submitted. false when absent.",
      }),
    ),
    window: Type.String({
      minLength: 1,
      maxLength: 40,
      description: "How far back: such as 1h, 24h or 7d, or the current calendar hour, day, week or month.",
    }),
    time_zone: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: "Time zone of a calendar window, such as Europe/Berlin; UTC when absent.",
      }),
    ),
    max: Type.Integer({
      minimum: 1,
      maximum: MAX_HISTORY,
      description: "Maximum number of past actions. If there are more, conditions that read the history fail.",
    }),
  },
  { additionalProperties: false, description: "The past actions that conditions read as history." },
);

const FactName = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";

const FactsSchema = Type.Record(
  Type.String({ pattern: FactName }),
  Type.Object(
    {
      source: Type.String({ pattern: FACT_SOURCE_NAME, description: "Name of a configured fact source." }),
      with: Type.Optional(
        Type.Record(Type.String({ pattern: FactName }), Type.String({ minLength: 1, description: "CEL." }), {
          maxProperties: 16,
          additionalProperties: false,
          description:
            "Inputs of the source, as CEL over the variables of conditions, such as { id: params.account }. None when absent.",
        }),
      ),
      schema: Type.Record(Type.String(), Type.Unknown(), {
        description: "JSON Schema of the value. Members that it does not name are not read.",
      }),
    },
    { additionalProperties: false, description: "A value from outside." },
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
    description: "Types of attributes, for the check of conditions. No influence on decisions.",
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
        description: "Values that differ, by environment (`environment` of the configuration).",
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
        description: "shadow: evaluated and recorded, never enforced. enforce when absent.",
      }),
    ),
    case_sensitive: Type.Optional(
      Type.Boolean({
        description: "true: tools, operations and agents match case-sensitively. Case is ignored when absent.",
      }),
    ),
    applies_to: Type.Optional(
      Type.Object(
        {
          tools: Type.Optional(
            Type.Array(Glob("Tool"), {
              minItems: 1,
              maxItems: 200,
              description: "Tools that the policy applies to; all when absent.",
            }),
          ),
          agents: Type.Optional(
            Type.Array(Glob("Agent"), {
              minItems: 1,
              maxItems: 200,
              description: "Agents that the policy applies to; all when absent.",
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
        description: "Parameters of tools, for the check of conditions. No influence on decisions.",
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
              description: "Reverts the rule if a larger share of its newest 50 results failed; 0.1 when absent.",
            }),
          ),
        },
        {
          additionalProperties: false,
          description:
            "The policy was suggested from what people approved: its one rule allows actions only where this rule alone requires approval, until it is reverted.",
        },
      ),
    ),
    history: Type.Optional(HistorySchema),
    facts: Type.Optional(FactsSchema),
    attributes: Type.Optional(AttributesSchema),
    rules: Type.Array(RuleSchema, {
      maxItems: 20_000,
      description: "Rules in order: the first match decides. Can be empty only if the policy has limits.",
    }),
    limits: Type.Optional(
      Type.Array(LimitSchema, {
        minItems: 1,
        maxItems: 50,
        description: "Every limit is evaluated in addition to the rules; the strictest effect wins.",
      }),
    ),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: "Anything; no influence on decisions." }),
    ),
  },
  { additionalProperties: false, $id: "assent-policy", description: "A policy of Assent." },
);

const ACTION = {
  agent_id: Type.String({ minLength: 1, maxLength: 256, description: "Who acts." }),
  tool: Type.String({ minLength: 1, maxLength: 256, description: "With what." }),
  operation: Type.String({ minLength: 1, maxLength: 256, description: "What is done." }),
  params: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: "Arguments; {} when absent." })),
  context: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: "What else is said of the action; {} when absent." }),
  ),
};
const Action = Type.Object(ACTION, { additionalProperties: false, description: "What is submitted." });
export const GivenPrincipal = Type.Object(
  {
    key_id: Type.Optional(Type.String({ description: "Id of the key." })),
    name: Type.Optional(Type.String({ description: "Name of the key." })),
    agent_id: Type.Optional(
      Type.Union([Type.String(), Type.Null()], { description: "Agent that the key is bound to." }),
    ),
    owner: Type.Optional(Type.Union([Type.String(), Type.Null()], { description: "Whose key it is." })),
    claims: Type.Optional(
      Type.Unsafe<JsonObject>(
        Type.Record(Type.String(), Type.Unknown(), { description: "Verified claims of the agent's token." }),
      ),
    ),
    groups: Type.Optional(
      Type.Array(Type.String(), { description: "Groups of the key or the user; none when absent." }),
    ),
    roles: Type.Optional(Type.Array(Type.String(), { description: "Roles of the user; none when absent." })),
  },
  {
    additionalProperties: false,
    description: "The key or user that submits the action; what is absent is null or empty, and key_id is test.",
  },
);

export const GivenAgent = Type.Object(
  {
    groups: Type.Optional(Type.Array(Type.String(), { description: "agent_groups; none when absent." })),
    metadata: Type.Optional(
      Type.Unsafe<JsonObject>(
        Type.Record(Type.String(), Type.Unknown(), { description: "agent_metadata; {} when absent." }),
      ),
    ),
  },
  { additionalProperties: false, description: "What the service knows of the agent." },
);

export const GivenFacts = Type.Record(Type.String({ pattern: FactName }), Type.Unknown(), {
  additionalProperties: false,
  description: "Values of facts, by name. A fact that is absent is one whose source does not answer.",
});

const Used = Type.Record(Type.String(), Type.Number({ minimum: 0, maximum: 1_000_000_000 }), {
  description: "Usage of limits before the action, by name of the limit: number of actions, or the sum. Default: none.",
});

const SessionName = Type.String({
  minLength: 1,
  description: "Session of the action: past actions of the same name are of the same session. None when absent.",
});

const GivenHistory = Type.Array(
  Type.Object(
    {
      ago: Type.String({ description: "How long before the action, such as 30m." }),
      agent_id: Type.Optional(Type.String({ minLength: 1, description: "Agent; the one of the action when absent." })),
      key_id: Type.Optional(Type.String({ description: "Key that submitted it; the one of the action when absent." })),
      session: Type.Optional(Type.String({ description: "Session; the one of the action when absent." })),
      tool: Type.String({ minLength: 1, maxLength: 256, description: "With what." }),
      operation: Type.String({ minLength: 1, maxLength: 256, description: "What was done." }),
      params: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: "Arguments; {} when absent." })),
      context: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: "Context; {} when absent." })),
      status: Type.Optional(
        Type.Union(
          ACTION_STATUSES.map((status) => Type.Literal(status)),
          { description: "Status now; succeeded when absent." },
        ),
      ),
    },
    { additionalProperties: false, description: "An action that was submitted before." },
  ),
  { maxItems: 1_000, description: "Past actions that histories of policies contain, in any order. None when absent." },
);

/** Schema of a file with one action and the key that submits it. */
export const SampleActionSchema = Type.Object(
  {
    ...ACTION,
    principal: Type.Optional(GivenPrincipal),
    agent: Type.Optional(GivenAgent),
    used: Type.Optional(Used),
    session: Type.Optional(SessionName),
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
    expires_in: Type.Optional(Type.String({ description: "How long the action waits for approval, such as 4h." })),
    valid_for: Type.Optional(Type.String({ description: "How long it can start after approval, such as 1h." })),
    rejection_holds: Type.Optional(
      Type.String({ description: "How long a rejection refuses the same request, such as 24h, or none." }),
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
    description: "Terms of the approval that all policies together require; what is absent is not compared.",
  },
);

const EXPECTED = {
  policy: Type.Optional(Type.String({ description: "Policy that decides." })),
  rule: Type.Optional(Type.String({ description: "Rule or limit that decides." })),
  reason_code: Type.Optional(
    Type.String({ description: "Such as POLICY_RULE, NO_MATCHING_RULE, CONDITION_ERROR, LIMIT_EXCEEDED." }),
  ),
  risk: Type.Optional(Risk),
  approval: Type.Optional(ExpectedApproval),
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
    after: Type.Optional(
      Type.String({ description: "Time that passes before the step, such as 30m. None when absent." }),
    ),
    submit: Type.Optional(Action),
    id: ActionName("Name of the submitted action, for later steps."),
    times: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000, description: "How often the action is submitted. Once when absent." }),
    ),
    principal: Type.Optional(GivenPrincipal),
    agent: Type.Optional(GivenAgent),
    facts: Type.Optional(GivenFacts),
    session: Type.Optional(SessionName),
    approve: ActionName("Action that `by` approves."),
    reject: ActionName("Action that `by` rejects."),
    by: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: "Owner who votes, such as ada." })),
    groups: Type.Optional(Type.Array(Type.String(), { description: "Groups of the voter. None when absent." })),
    shares_group: Type.Optional(
      Type.Boolean({ description: "true: the voter is in a group of the requester. false when absent." }),
    ),
    signed: Type.Optional(Type.Boolean({ description: "true: the voter signs with a passkey. false when absent." })),
    start: ActionName("Action that starts."),
    finish: ActionName("Action whose result is reported."),
    success: Type.Optional(Type.Boolean({ description: "The reported result. true when absent." })),
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
        { additionalProperties: false, description: "What must come out; what is absent is not compared." },
      ),
    ),
  },
  {
    additionalProperties: false,
    description: "One of submit, approve, reject, start, finish and cancel; or only after.",
  },
);

export const PolicyTestSchema = Type.Object(
  {
    now: Type.String({ format: "date-time", description: "The clock, RFC 3339." }),
    policies: Type.Optional(
      Type.Array(Type.String(), { description: "Names of the policies under test; all of the folder when absent." }),
    ),
    environment: Type.Optional(
      Type.String({ description: "Environment whose shared data applies; the configured one when absent." }),
    ),
    cases: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.String({ minLength: 1, maxLength: 200, description: "What the case shows." }),
            now: Type.Optional(Type.String({ format: "date-time", description: "Another clock for this case." })),
            action: Action,
            principal: Type.Optional(GivenPrincipal),
            agent: Type.Optional(GivenAgent),
            used: Type.Optional(Used),
            session: Type.Optional(SessionName),
            history: Type.Optional(GivenHistory),
            facts: Type.Optional(GivenFacts),
            expect: Type.Object(
              { effect: Effect, ...EXPECTED },
              { additionalProperties: false, description: "What must come out; what is absent is not looked at." },
            ),
          },
          { additionalProperties: false, description: "One action and what must come out." },
        ),
        { minItems: 1, description: "Each on its own: nothing of one is left for the next." },
      ),
    ),
    scenarios: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.String({ minLength: 1, maxLength: 200, description: "What the scenario shows." }),
            now: Type.Optional(
              Type.String({ format: "date-time", description: "Another clock for the start of this scenario." }),
            ),
            steps: Type.Array(Step, { minItems: 1, maxItems: 1_000, description: "What happens, in order." }),
          },
          {
            additionalProperties: false,
            description: "Several actions, with votes, results and the time between them.",
          },
        ),
        { minItems: 1, description: "Each on its own: nothing of one is left for the next." },
      ),
    ),
  },
  { additionalProperties: false, $id: "assent-policy-test", description: "Tests beside a policy." },
);
