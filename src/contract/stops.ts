/** What plugins may know of the stops that hold. */
import type { ActionRequest } from "../domain/actions.ts";
import type { Facts } from "../domain/policy/types.ts";
import type { Stops } from "../domain/stops.ts";

/** The part of a decision's facts that is about stops. */
export type StopFacts = Pick<Facts, "stops">;

export interface StopList {
  /** As the newest commit that this process knows of left them. Rejects with StorageError. */
  list(): Promise<Stops>;
  /** What a decision made now would know. */
  facts(action: Pick<ActionRequest, "agent_id" | "tool">): Promise<StopFacts>;
}
