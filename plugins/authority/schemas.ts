import { Type, type Static } from "@sinclair/typebox";

const closed = { additionalProperties: false };
const Name = (description: string) => Type.String({ minLength: 1, maxLength: 256, format: "name", description });
/** A name without wildcards, because rules and answers use it literally. */
const ExactName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 256, format: "name", pattern: "^[^*?\\u0000-\\u001f]+$", description });
const Case = Type.Union([Type.Literal("allowed"), Type.Literal("asks"), Type.Literal("denied")], {
  description: "`asks`: a person must approve.",
});

const Rule = Type.Object(
  {
    decision: Case,
    when: Type.Optional(
      Type.String({
        description:
          "Comparisons of parameters with numbers, such as `params.amount <= 100`; `other conditions` if the rule has other conditions or covers only some of the names. Absent for every other request.",
      }),
    ),
    note: Type.Optional(Type.String({ description: "The reason that a denied request gets." })),
  },
  closed,
);
export type AuthorityRule = Static<typeof Rule>;

const Item = Type.Object(
  {
    tool: Type.String({ description: "The tool; can be a glob." }),
    operation: Type.String({ description: "The operation; can be a glob." }),
    decision: Type.Union(
      [Type.Literal("allowed"), Type.Literal("asks"), Type.Literal("denied"), Type.Literal("depends")],
      {
        description: "`depends`: on the request; see `rules`.",
      },
    ),
    note: Type.Optional(Type.String({ description: "Why it is denied." })),
    rules: Type.Optional(
      Type.Array(Type.Array(Rule), {
        description:
          "With `depends`: one list for each policy. In a list, the first case that matches is the answer; without one, the policy has none. Of all answers the strictest counts, and a request without an answer is denied.",
      }),
    ),
    truncated: Type.Optional(Type.Literal(true, { description: "Present if there are more rules than listed." })),
  },
  closed,
);
export type AuthorityItem = Static<typeof Item>;

const Limit = Type.Object(
  {
    tools: Type.Array(Type.String()),
    operations: Type.Optional(Type.Array(Type.String(), { description: "Absent for all operations." })),
    count: Type.Optional(Type.Integer({ description: "Maximum number of actions." })),
    at_most: Type.Optional(Type.Number({ description: "Maximum sum." })),
    sum: Type.Optional(
      Type.String({ description: "What is summed, such as `params.amount`; absent for an expression." }),
    ),
    per: Type.Union(
      ["all", "agent", "key", "other"].map((each) => Type.Literal(each as "all" | "agent" | "key" | "other")),
      {
        description: "Whose actions count together: all, those of the agent, of the key, or of another value.",
      },
    ),
    window: Type.String({ description: "The period, such as `1h` or `day`." }),
    beyond: Case,
  },
  closed,
);
export type AuthorityLimit = Static<typeof Limit>;

export const AuthorityQuery = Type.Object(
  {
    agent_id: Type.Optional(Name("The agent. Required unless the key is bound to an agent.")),
    tool: Type.Optional(ExactName("Describes only this tool, and of it the operations that rules name.")),
    operation: Type.Optional(ExactName("With `tool`: describes only this operation.")),
  },
  closed,
);

export const Authority = Type.Object(
  {
    agent_id: Type.String(),
    policy_hash: Type.Union([Type.String(), Type.Null()], {
      description: "Digest of the policies that this describes.",
    }),
    tools: Type.Array(Item),
    limits: Type.Array(Limit),
    truncated: Type.Boolean({ description: "Whether rules name more tools and operations than the list contains." }),
    text: Type.String({ description: "The same for a model." }),
  },
  { ...closed, title: "Authority" },
);

const Bound = Type.Object(
  {
    path: Type.String({
      pattern: "^params([.][A-Za-z_][A-Za-z0-9_]{0,63}){1,8}$",
      description: "Such as `params.amount`.",
    }),
    value: Type.Number({ description: "Its highest value." }),
  },
  closed,
);

export const ProposalBody = Type.Object(
  {
    agent_id: Type.Optional(ExactName("The agent. Required unless the key is bound to an agent.")),
    tool: ExactName("The tool."),
    operation: ExactName("The operation of the tool."),
    most: Type.Optional(Bound),
    reason: Type.String({
      minLength: 1,
      maxLength: 500,
      description: "Why the rule would help. People read it; recorded permanently in the ledger.",
    }),
  },
  {
    ...closed,
    examples: [
      {
        tool: "stripe",
        operation: "refund",
        most: { path: "params.amount", value: 100 },
        reason: "most refunds are small",
      },
    ],
  },
);

export const ProposalRecord = Type.Object(
  {
    id: Type.String(),
    agent_id: Type.String(),
    tool: Type.String(),
    operation: Type.String(),
    most: Type.Union([Type.Object({ path: Type.String(), value: Type.Number() }, closed), Type.Null()]),
    reason: Type.String(),
    rule: Type.String({ description: "The proposal as a policy in shadow mode. Nothing applies it." }),
    free: Type.Array(Type.String(), {
      description:
        "What the rule leaves free: a member without a lower bound, and `params.*` and `context.*`, because the rule does not restrict other members.",
    }),
    evidence: Type.Object(
      {
        compared: Type.Integer({ description: "Number of the agent's newest actions that were counted." }),
        allowed: Type.Integer(),
        approved: Type.Integer(),
        denied: Type.Integer(),
        failed: Type.Integer(),
      },
      {
        ...closed,
        description:
          "Its earlier actions with this tool and operation, and at most the proposed value, when it made the proposal.",
      },
    ),
    proposed_at: Type.String({ format: "date-time" }),
    dismissed_at: Type.Union([Type.String({ format: "date-time" }), Type.Null()]),
    dismissed_by: Type.Union([Type.String(), Type.Null()]),
    comment: Type.Union([Type.String(), Type.Null()]),
  },
  { ...closed, title: "RuleProposal" },
);

export const ProposalList = Type.Object({ proposals: Type.Array(ProposalRecord) }, closed);
export const ProposalParams = Type.Object({ id: Type.String({ maxLength: 64 }) }, closed);
export const DismissBody = Type.Object(
  { reason: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })) },
  { ...closed, examples: [{ reason: "refunds always need a person" }] },
);
