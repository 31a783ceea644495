/** Schemas of the routes of limits. */
import { closed, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { errorKind, type Static, Type } from "../../src/plugin.ts";

export const ERRORS = { notFound: errorKind("LIMIT_NOT_FOUND", 404, "No such limit") };

const Names = orNull(Type.Array(Type.String()));

export const LimitRecord = Type.Object(
  {
    policy: Type.String(),
    limit: Type.String(),
    shadow: Type.Boolean({ description: "Whether the policy is in shadow mode, so that the limit denies nothing." }),
    managed_by: orNull(textSchema("The source that manages the policy; null if it is changed in the console or API.")),
    tools: Names,
    operations: Names,
    agents: Names,
    per: orNull(
      textSchema("What the limit counts separately for: `agent`, `key` or an expression; null for one count."),
    ),
    count: orNull(Type.Number()),
    sum: orNull(textSchema("The expression that is summed.")),
    at_most: orNull(Type.Number()),
    window: Type.String(),
    time_zone: orNull(Type.String()),
    effect: Type.Union([Type.Literal("deny"), Type.Literal("require_approval")]),
    since: timeSchema("Start of the current window."),
    use: orNull(
      Type.Array(
        Type.Object({ subject: textSchema("Agent or key id; empty for one count."), used: Type.Number() }, closed),
        {
          description:
            "The 50 highest. Null if the limit is counted by another value, if it depends on a redacted parameter, or for keys that cannot see all actions.",
        },
      ),
    ),
  },
  { title: "Limit", ...closed },
);
export type LimitRecord = Static<typeof LimitRecord>;
export const LimitList = Type.Object({ limits: Type.Array(LimitRecord) }, closed);

export const UseQuery = Type.Object(
  {
    policy: Type.String({ maxLength: 256 }),
    limit: Type.String({ maxLength: 256 }),
    subject: Type.Optional(Type.String({ maxLength: 256, description: "As in `use`. Default: empty." })),
  },
  closed,
);
export const UseList = Type.Object(
  {
    uses: Type.Array(
      Type.Object(
        { action_id: Type.String(), at: timeSchema("When it counted."), amount: orNull(Type.Number()) },
        closed,
      ),
      { description: "The newest 50 in the current window, newest first." },
    ),
  },
  closed,
);
