/** Stops in effect, as plugins can read them. */
import type { ActionRequest } from "../domain/actions.ts";
import type { Facts } from "../domain/policy/policy-types.ts";
import type { Stops } from "../domain/stops.ts";

/** The facts of a decision about stops. */
export type StopFacts = Pick<Facts, "stops">;

export interface StopList {
  /** Returns the stops at the newest commit that this process knows. Rejects with StorageError. */
  list(): Promise<Stops>;
  /** Returns the facts about stops for a decision made now. */
  facts(action: Pick<ActionRequest, "agent_id" | "tool">): Promise<StopFacts>;
}
