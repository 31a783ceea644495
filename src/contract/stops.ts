/** Stops in effect, as plugins can read them. */
import type { ActionRequest } from "../domain/actions.ts";
import type { Facts } from "../domain/policy/policy-types.ts";
import type { StopHistory } from "../domain/stops.ts";

/** The member of a decision's facts that lists the stops in effect. */
export type DecisionStopFacts = Pick<Facts, "stops">;

export interface StopList {
  /** Returns the stops at the newest commit that this process knows. Rejects with StorageError. */
  list(): Promise<StopHistory>;
  /** Returns the facts about stops for a decision made now. */
  facts(action: Pick<ActionRequest, "agent_id" | "tool">): Promise<DecisionStopFacts>;
}
