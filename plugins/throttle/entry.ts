/** The ledger entry of a throttled key. */
import { ActorSchema, closed, countSchema, textSchema, timeSchema } from "../../src/core.ts";
import { defineRecord, type RecordOf, Type } from "../../src/plugin.ts";

/**
 * A key reached its limit of requests for approval in this hour. The service refuses more requests until `until`,
 * without an entry. The preceding entry is the decision on the last accepted request.
 */
export const THROTTLE_ENTRY = defineRecord("throttle", {
  at: timeSchema("Time of the entry."),
  agent_id: textSchema("The agent of the last request."),
  related_action: textSchema("The action of the last request."),
  requests: countSchema("Number of requests for approval in this hour."),
  usual: Type.Object(
    { requests: countSchema("Number of requests."), hours: countSchema("Number of hours in which they were made.") },
    { description: "Number of requests for approval in the previous seven days.", ...closed },
  ),
  times: countSchema("Factor by which the requests must exceed the usual number."),
  minimum: countSchema("Number of requests per hour that is never throttled."),
  until: timeSchema("End of the hour."),
  submitted_by: ActorSchema,
});
export type ThrottleEntry = RecordOf<typeof THROTTLE_ENTRY>;

declare module "../../src/domain/entries.ts" {
  interface FeatureEntries {
    throttle: ThrottleEntry;
  }
}
