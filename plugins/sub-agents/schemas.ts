/** Schemas of authorities, and their errors. */
import { closed, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { errorKind, PAGE_QUERY, type Static, Type } from "../../src/plugin.ts";
import { GrantSum } from "../actions/api.ts";
import { CAUSES } from "./entry.ts";

export const ERRORS = {
  notFound: errorKind("AUTHORITY_NOT_FOUND", 404, "No such authority"),
  ended: errorKind("AUTHORITY_ENDED", 409, "The authority has ended"),
  tooWide: errorKind("AUTHORITY_TOO_WIDE", 403, "An agent can give at most what it has"),
  tooMany: errorKind("TOO_MANY_AUTHORITIES", 429, "Too many open authorities"),
};

const Globs = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 256, format: "name" }), { minItems: 1, maxItems: 20, description });

export const AuthorityBody = Type.Object(
  {
    agent_id: Type.String({
      minLength: 1,
      maxLength: 256,
      format: "name",
      description: "The agent that may act under the authority.",
    }),
    for: Type.Optional(
      Type.String({
        pattern: "^(?=[1-9])(\\d{1,3}h)?(\\d{1,5}m)?$",
        description: "Time from now to its end, such as 30m or 2h; at most 168h. Default: the end of `parent`.",
      }),
    ),
    tools: Globs("Tools that it covers; globs with `*` and `?`."),
    operations: Type.Optional(Globs("Operations that it covers; globs. Default: all operations of the tools.")),
    condition: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 2000,
        description: "CEL over the request, such as `params.amount <= 50`. Actions that do not meet it are denied.",
      }),
    ),
    limits: Type.Optional(
      Type.Object(
        {
          count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, description: "Number of actions." })),
          sum: Type.Optional(GrantSum),
        },
        { description: "Count over the actions of all agents under it.", ...closed },
      ),
    ),
    parent: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: "The authority under which the agent itself acts. The new one then ends with it.",
      }),
    ),
    reason: Type.Optional(Type.String({ maxLength: 500, description: "Recorded in the ledger." })),
  },
  {
    ...closed,
    examples: [
      {
        agent_id: "refund-worker",
        for: "2h",
        tools: ["stripe"],
        operations: ["refund"],
        condition: "params.amount <= 50",
        limits: { count: 20 },
      },
    ],
  },
);
export type AuthorityBody = Static<typeof AuthorityBody>;

export const AuthorityParams = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 64, description: "Authority." }) },
  closed,
);

export const AuthorityQuery = Type.Object(
  {
    active: Type.Optional(
      Type.Boolean({ description: "true lists only authorities in force; false, only ended authorities." }),
    ),
    agent_id: Type.Optional(
      Type.String({ maxLength: 256, description: "Authorities that this agent gave, or may act under." }),
    ),
    root: Type.Optional(Type.String({ maxLength: 64, description: "All authorities of one chain or tree." })),
    limit: PAGE_QUERY.limit,
    cursor: PAGE_QUERY.cursor,
  },
  closed,
);

export const AuthorityRecord = Type.Object(
  {
    id: Type.String(),
    status: Type.Union([Type.Literal("active"), Type.Literal("ended")]),
    agent_id: textSchema("The agent that may act under it."),
    from: textSchema("The agent that gave it."),
    parent: orNull(textSchema("The authority under which it was given; null if there is none.")),
    chain: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          agent_id: textSchema("The agent that gave it."),
          principal: textSchema("Principal of its key: `user:<id>` if a person owns the key."),
        },
        closed,
      ),
      { description: "The authority and its ancestors, root first." },
    ),
    tools: Type.Array(Type.String()),
    operations: Type.Array(Type.String()),
    condition: orNull(textSchema("CEL; null covers every request.")),
    limits: Type.Object({ count: orNull(Type.Integer()), sum: orNull(GrantSum) }, closed),
    created_at: timeSchema("When it was given."),
    until: timeSchema("When it ends."),
    reason: orNull(textSchema("Comment of the agent that gave it.")),
    ended: orNull(
      Type.Object(
        {
          cause: Type.Union(
            [...CAUSES, "time" as const].map((cause) => Type.Literal(cause)),
            { description: "parent: one of its ancestors ended." },
          ),
          at: timeSchema("When it ended."),
          by: orNull(textSchema("Principal; null if its time was over.")),
        },
        closed,
      ),
    ),
  },
  { title: "AgentAuthority", ...closed },
);
export type AuthorityRecord = Static<typeof AuthorityRecord>;

export const AuthorityList = Type.Object(
  { authorities: Type.Array(AuthorityRecord), next_cursor: orNull(Type.String()) },
  closed,
);
