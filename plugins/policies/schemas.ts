import { Type, type Static } from "@sinclair/typebox";
import { orNull, PolicySchema } from "../../src/core.ts";
import { PAGE_QUERY } from "../../src/plugin.ts";

const Time = Type.String({ format: "date-time" });
const Version = Type.Integer({
  minimum: 1,
  maximum: 2_147_483_647,
  description: "Number of the version. Every change creates a new version, and versions are immutable.",
});

export const EXAMPLE_DEFINITION = {
  policy: "refunds",
  description: "Refunds above 1,000 require approval.",
  rules: [
    { name: "small refunds", tool: "stripe", operation: "refund", when: "params.amount <= 1000", effect: "allow" },
    {
      name: "large refunds",
      tool: "stripe",
      operation: "refund",
      effect: "require_approval",
      risk: "high",
      approval: { quorum: 2, expires_in: "1h" },
    },
  ],
};
const YAML = `policy: refunds
rules:
  - { name: small refunds, tool: stripe, operation: refund, when: params.amount <= 1000, effect: allow }
`;
const ID = "019346a0-0000-7000-8000-000000000000";
const AT = "2026-01-31T12:00:00.000Z";

const { $id: _, ...policyOptions } = PolicySchema;
/** A policy as JSON, with the same members as the YAML. */
export const PolicyBody = {
  ...policyOptions,
  title: "PolicyDefinition",
  examples: [EXAMPLE_DEFINITION],
} as typeof PolicySchema;

export const PolicyParams = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 64, description: "Policy: its id, or its name." }) },
  { additionalProperties: false },
);

export const ListQuery = Type.Object(
  {
    status: Type.Optional(Type.Union([Type.Literal("active"), Type.Literal("inactive")])),
    name: Type.Optional(Type.String({ maxLength: 64 })),
    ...PAGE_QUERY,
  },
  { additionalProperties: false },
);
export type ListQuery = Static<typeof ListQuery>;

export const ActivateQuery = Type.Object(
  {
    activate: Type.Optional(
      Type.Boolean({ description: "Immediately makes the new version the active one. Also needs policies:activate." }),
    ),
  },
  { additionalProperties: false },
);
export const VersionQuery = Type.Object({ version: Type.Optional(Version) }, { additionalProperties: false });
export const PageQuery = Type.Object({ ...PAGE_QUERY }, { additionalProperties: false });
export const DiffQuery = Type.Object(
  { from: Type.Optional(Version), to: Type.Optional(Version) },
  { additionalProperties: false },
);

export const ActivateBody = Type.Object(
  { version: Type.Optional(Version) },
  { additionalProperties: false, examples: [{ version: 1 }] },
);
export type ActivateBody = Static<typeof ActivateBody>;

export const ImportBody = Type.Object(
  { yaml: Type.String({ minLength: 1, description: "One or more YAML documents, separated by `---`." }) },
  { additionalProperties: false, examples: [{ yaml: YAML }] },
);
export type ImportBody = Static<typeof ImportBody>;

const head = {
  id: Type.String({ format: "uuid" }),
  name: Type.String(),
  description: orNull(Type.String()),
  mode: Type.Union([Type.Literal("enforce"), Type.Literal("shadow")], {
    description: "Mode of the active version, or of the newest if none is active.",
  }),
  managed_by: orNull(Type.String({ description: "Policy source that manages it; null if the API does." })),
  baseline: Type.Boolean({
    description: "Whether it is part of the baseline, whose rules no other policy can replace.",
  }),
  status: Type.Union([Type.Literal("active"), Type.Literal("inactive")]),
  active_version: orNull(Type.Integer()),
  latest_version: Type.Integer(),
  created_at: Time,
  updated_at: Time,
};
const body = {
  version: Type.Integer({ description: "Number of the version in `definition`." }),
  definition: Type.Record(Type.String(), Type.Unknown(), {
    description: "The policy as JSON, with the members that it has in YAML.",
  }),
  yaml: orNull(
    Type.String({
      description:
        "The policy as its author wrote it, byte for byte. Null if it was sent as JSON or together with other policies, or comes from a policy source.",
    }),
  ),
  digest: Type.String({ description: "SHA-256 of the definition's canonical JSON, hex." }),
  created_by: orNull(
    Type.String({ description: "Id of the key that created the version; null if a policy source did." }),
  ),
};
/** Warnings. The policy is accepted, but probably does not have the effect that its author intended. */
const warnings = Type.Array(Type.String(), {
  description: "Warnings about probable mistakes, such as channels that the configuration does not define.",
});
const HEAD = {
  id: ID,
  name: "refunds",
  description: "Refunds above 1,000 require approval.",
  mode: "enforce",
  managed_by: null,
  baseline: false,
  status: "active",
  active_version: 1,
  latest_version: 2,
  created_at: AT,
  updated_at: AT,
};
const BODY = {
  version: 2,
  definition: EXAMPLE_DEFINITION,
  yaml: null,
  digest: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  created_by: ID,
};

export const PolicyRecord = Type.Object(
  { ...head, ...body, warnings },
  { title: "Policy", additionalProperties: false, examples: [{ ...HEAD, ...BODY, warnings: [] }] },
);
export type PolicyRecord = Static<typeof PolicyRecord>;

const PolicySummary = Type.Object(
  {
    ...head,
    rules: Type.Integer({ description: "Number of rules in the newest version." }),
    rule_names: Type.Array(Type.String(), { description: "Names of the rules in the newest version." }),
  },
  { additionalProperties: false },
);
export type PolicySummary = Static<typeof PolicySummary>;

export const PolicyList = Type.Object(
  { policies: Type.Array(PolicySummary), next_cursor: orNull(Type.String()) },
  {
    additionalProperties: false,
    examples: [{ policies: [{ ...HEAD, rules: 2, rule_names: ["small", "large"] }], next_cursor: null }],
  },
);

export const VersionList = Type.Object(
  {
    versions: Type.Array(
      Type.Object({ ...body, active: Type.Boolean(), created_at: Time }, { additionalProperties: false }),
    ),
    next_cursor: orNull(Type.String()),
  },
  {
    additionalProperties: false,
    examples: [{ versions: [{ ...BODY, active: false, created_at: AT }], next_cursor: null }],
  },
);

/** One difference between two versions. */
export const VersionChange = Type.Object(
  {
    kind: Type.Union(
      [
        "policy_changed",
        "limit_added",
        "limit_removed",
        "limit_changed",
        "rule_added",
        "rule_removed",
        "rule_changed",
        "rule_moved",
      ].map((kind) => Type.Literal(kind)),
    ),
    rule: orNull(Type.String()),
    before: orNull(Type.Integer({ description: "Position among the rules, from 1." })),
    after: orNull(Type.Integer({ description: "Position among the rules, from 1." })),
    fields: Type.Array(
      Type.Object(
        { field: Type.String(), before: Type.Unknown(), after: Type.Unknown() },
        { additionalProperties: false },
      ),
    ),
    summary: Type.String({ description: "One sentence for people." }),
  },
  { additionalProperties: false },
);

export const Diff = Type.Object(
  {
    policy: Type.String(),
    from: Type.Integer(),
    to: Type.Integer(),
    changes: Type.Array(VersionChange),
  },
  {
    additionalProperties: false,
    examples: [
      {
        policy: "refunds",
        from: 1,
        to: 2,
        changes: [
          {
            kind: "rule_changed",
            rule: "small refunds",
            before: 1,
            after: 1,
            fields: [{ field: "effect", before: "allow", after: "deny" }],
            summary: 'the effect of the rule "small refunds" is deny; it was allow',
          },
        ],
      },
    ],
  },
);

export const ImportResult = Type.Object(
  {
    policies: Type.Array(
      Type.Object(
        {
          id: Type.String({ format: "uuid" }),
          name: Type.String(),
          version: Type.Integer(),
          outcome: Type.Union([Type.Literal("created"), Type.Literal("updated"), Type.Literal("unchanged")]),
          active: Type.Boolean({ description: "This version is the active one." }),
        },
        { additionalProperties: false },
      ),
    ),
    policy_set: orNull(Type.String({ description: "Digest of the active set after the import." })),
    warnings,
  },
  {
    additionalProperties: false,
    examples: [
      {
        policies: [{ id: ID, name: "refunds", version: 1, outcome: "created", active: true }],
        policy_set: BODY.digest,
        warnings: [],
      },
    ],
  },
);
