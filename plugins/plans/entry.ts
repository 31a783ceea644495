/** The ledger entry of a plan. */
import { ActorSchema, closed, textSchema, timeSchema } from "../../src/core.ts";
import { defineRecord, type RecordOf, Type } from "../../src/plugin.ts";
import { digestSchema } from "../actions/api.ts";

/** Several actions were submitted at once. Their decisions follow in the order of the list, in the same transaction. */
export const PLAN_ENTRY = defineRecord("plan", {
  at: timeSchema("Time of the entry."),
  agent_id: textSchema("Agent of all the actions."),
  plan: Type.Object(
    {
      id: Type.String(),
      ordered: Type.Boolean({ description: "Each action can start only when all earlier actions have ended." }),
      stop_on_failure: Type.Boolean({ description: "No action can start after another action has failed." }),
      actions: Type.Array(
        Type.Object(
          {
            action_id: textSchema("The action."),
            commitment: digestSchema("Commitment in the decision of the action."),
          },
          closed,
        ),
      ),
    },
    { description: "The actions in order. Their decisions follow this entry.", ...closed },
  ),
  by: ActorSchema,
});
export type PlanEntry = RecordOf<typeof PLAN_ENTRY>;

declare module "../../src/domain/entries.ts" {
  interface FeatureEntries {
    plan: PlanEntry;
  }
}
