/** The ledger entry of a grant. */
import { ActorSchema, closed, countSchema, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { defineRecord, type RecordOf, Type } from "../../src/plugin.ts";
import { GrantSum } from "../actions/api.ts";

/**
 * An approver granted later actions, or a grant ended. A grant also ends without an entry when it expires or a bar
 * covers it.
 */
export const GRANT_ENTRY = defineRecord("grant", {
  at: timeSchema("Time of the entry."),
  change: Type.Union([Type.Literal("granted"), Type.Literal("ended")], { description: "The change." }),
  agent_id: textSchema("The agent that can use the grant."),
  grant: Type.Object(
    {
      id: Type.String(),
      tool: Type.String(),
      operation: Type.String(),
      scope: orNull(textSchema("CEL over the request; null covers every request.")),
      count: countSchema("Maximum number of uses."),
      sum: orNull(GrantSum),
      until: timeSchema("When the grant ends."),
      ends_on_failure: Type.Boolean({ description: "Whether a failed result of a use ends the grant." }),
      passkey: orNull(textSchema("Credential id of the passkey that signed the vote with the grant.")),
    },
    { description: "The grant as it was when it was created.", ...closed },
  ),
  cause: orNull(
    Type.Union(
      [
        Type.Literal("revoked"),
        Type.Literal("rejection"),
        Type.Literal("flag"),
        Type.Literal("failure"),
        Type.Literal("suspension"),
      ],
      { description: "Why the grant ended; null when it is created." },
    ),
  ),
  related_action: orNull(
    textSchema(
      "The action that the grant was created with, that was rejected or flagged, that failed, or whose approval was withdrawn.",
    ),
  ),
  comment: orNull(textSchema("Comment of the grantor, or of the person who ended the grant.")),
  by: ActorSchema,
});
export type GrantEntry = RecordOf<typeof GRANT_ENTRY>;

declare module "../../src/domain/entries.ts" {
  interface FeatureEntries {
    grant: GrantEntry;
  }
}
