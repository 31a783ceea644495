/** The ledger entry of a stop. */
import { ActorSchema, closed, countSchema, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { defineRecord, type RecordOf, Type } from "../../src/plugin.ts";

/** A stop was placed or lifted. `lift_asked`: too few people have requested the lift, so the stop remains active. */
export const STOP_ENTRY = defineRecord("stop", {
  at: timeSchema("Time of the entry."),
  change: Type.Union([Type.Literal("placed"), Type.Literal("lift_asked"), Type.Literal("lifted")], {
    description: "The change.",
  }),
  stop: Type.Object(
    {
      id: Type.String(),
      agent: orNull(textSchema("Glob of the agents; null covers all.")),
      tool: orNull(textSchema("Glob of the tools; null covers all.")),
      policy: orNull(textSchema("Policy whose answers are stopped; null stops all.")),
      reason: Type.String(),
      until: orNull(textSchema("When the stop expires; null if it never expires.")),
    },
    { description: "The stop as it was when it was placed.", ...closed },
  ),
  comment: orNull(textSchema("Comment of the person who lifts the stop.")),
  approvals: countSchema("Number of people who have requested to lift the stop; 0 when it is placed."),
  needed: countSchema("Number of people who must request to lift the stop."),
  by: ActorSchema,
});
export type StopEntry = RecordOf<typeof STOP_ENTRY>;

declare module "../../src/domain/entries.ts" {
  interface FeatureEntries {
    stop: StopEntry;
  }
}
