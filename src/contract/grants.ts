/** Read access to grants for privileged plugins. */
import type { Grants } from "../domain/grants.ts";
import type { StopHistory } from "../domain/stops.ts";

export interface GrantList {
  /**
   * Returns the grants, and the stops (which can end grants), at the newest commit that this process knows. Rejects
   * with StorageError.
   */
  list(): Promise<{ grants: Grants; stops: StopHistory }>;
}
