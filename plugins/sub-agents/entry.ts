/** The ledger entry of an authority. */
import { ActorSchema, closed, countSchema, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { defineRecord, type RecordOf, Type } from "../../src/plugin.ts";
import { GrantSum } from "../actions/api.ts";

/** Causes of an entry that ends an authority. An authority also ends without an entry when it expires. */
export const CAUSES = ["revoked", "parent", "suspension", "deactivation"] as const;

/** An agent gave another agent a part of its rights, or this authority ended. */
export const AUTHORITY_ENTRY = defineRecord("authority", {
  at: timeSchema("Time of the entry."),
  change: Type.Union([Type.Literal("created"), Type.Literal("ended")], { description: "The change." }),
  agent_id: textSchema("The agent that may act under the authority."),
  authority: Type.Object(
    {
      id: Type.String(),
      parent: orNull(textSchema("The authority under which it was given; null if there is none.")),
      from: textSchema("The agent that gave it."),
      tools: Type.Array(Type.String(), { description: "Globs of tools." }),
      operations: Type.Array(Type.String(), { description: "Globs of operations." }),
      condition: orNull(textSchema("CEL over the request; null covers every request.")),
      count: orNull(countSchema("Maximum number of actions under it and the authorities below it.")),
      sum: orNull(GrantSum),
      until: timeSchema("When it ends."),
      session: orNull(
        Type.Object(
          {
            id: textSchema("Session in which it was given."),
            issued_by: textSchema("Key that requested the session."),
          },
          closed,
        ),
      ),
    },
    { description: "The authority as it was given.", ...closed },
  ),
  cause: orNull(
    Type.Union(
      CAUSES.map((cause) => Type.Literal(cause)),
      { description: "Why it ended; null when it is given. parent: one of its ancestors ended." },
    ),
  ),
  comment: orNull(textSchema("Comment of the agent that gave it, or of who ended it.")),
  by: ActorSchema,
});
export type AuthorityEntry = RecordOf<typeof AUTHORITY_ENTRY>;

declare module "../../src/domain/entries.ts" {
  interface FeatureEntries {
    authority: AuthorityEntry;
  }
}
